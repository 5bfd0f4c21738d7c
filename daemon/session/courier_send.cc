#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "daemon/session/courier.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/lifeline.h"

namespace ubd {
namespace {

absl::Status DoesNotRead() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyWaiters,
                       "too many descriptors lie unread in the lifelines of this session or its user: read them, then "
                       "open the queue again");
}

absl::Status HungUp() {
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded, "the session's lifeline is closed");
}

int ErrnoOf(const absl::Status& status) {
  int error = 0;
  std::string text = ub::DetailOf(status, "errno").value_or("");
  return absl::SimpleAtoi(text, &error) ? error : 0;
}

ub::wire::Grant FrameFor(const Grant& grant, uint64_t number, size_t first, size_t count) {
  auto frame = ub::wire::NewFrame<ub::wire::Grant>();
  frame.lease = grant.lease.value();
  frame.generation = grant.generation.value();
  frame.first = static_cast<uint32_t>(first);
  frame.count = static_cast<uint32_t>(count);
  frame.total = static_cast<uint32_t>(grant.blocks.size());
  frame.access = static_cast<uint32_t>(grant.access);
  frame.delivery = number;
  return frame;
}

}  // namespace

absl::Status Courier::SendWelcome(absl::Span<const std::byte> frame, int page_fd) {
  // Counted as any other fd in flight; the share of the uid does not hold it up, as sessions are limited in number.
  const size_t counted = context_->credits.Take(session_, 1) == FdCredits::Wait::kNone ? 1 : 0;
  absl::Status sent;
  {
    ub::MutexLock lock(&mu_);
    sent = ub::wire::SendPacket(lifeline_.get(), frame, {&page_fd, 1});
  }
  sent.ok() ? context_->credits.Sent(session_, counted) : context_->credits.Unsent(session_, counted);
  return sent;
}

absl::Status Courier::LeaseEnded() {
  return ub::MakeError(absl::StatusCode::kAborted, ub::Reason::kRevoked,
                       "the lease ended (revoked, expired, released or given up) before its memory was delivered");
}

Courier::Outcome Courier::SendBatch(Delivery& delivery) {
  const size_t left = delivery.grant.blocks.size() - delivery.sent;
  if (left == 0) {
    delivery.Answer(absl::OkStatus());
    return Outcome::kDone;
  }
  if (!delivery.pinned) {
    absl::StatusOr<LeasePin> pin = context_->broker.Pin(session_, delivery.grant.lease, delivery.grant.access);
    if (!pin.ok()) return Drop(delivery, LeaseEnded());
    delivery.pin = *std::move(pin);
    delivery.pinned = true;
  }
  const size_t count = std::min(left, ub::wire::kMaxFdsPerFrame);
  const FdCredits::Wait wait = context_->credits.Take(session_, count);
  if (wait != FdCredits::Wait::kNone) return wait == FdCredits::Wait::kUid ? Outcome::kUidWait : Outcome::kOwnWait;
  absl::StatusOr<std::vector<ub::UniqueFd>> fds = OpenFds(delivery, count);
  const size_t opened = fds.ok() ? fds->size() : 0;
  if (opened < count) context_->credits.Unsent(session_, count - opened);
  if (fds.ok()) return SendFds(delivery, *fds);
  // No descriptor or no memory now is no reason to end a lease.
  return fds.status().code() == absl::StatusCode::kResourceExhausted ? Outcome::kBackOff : Fail(delivery, fds.status());
}

absl::StatusOr<std::vector<ub::UniqueFd>> Courier::OpenFds(const Delivery& delivery, size_t count) {
  std::vector<ub::UniqueFd> fds;
  fds.reserve(count);
  while (fds.size() < count) {
    const GrantedBlock& block = delivery.grant.blocks[delivery.sent + fds.size()];
    absl::StatusOr<ub::UniqueFd> fd = context_->open_fd(block.block, delivery.grant.access);
    if (!fd.ok()) {
      if (fds.empty() || fd.status().code() != absl::StatusCode::kResourceExhausted) return fd.status();
      break;
    }
    fds.push_back(*std::move(fd));
  }
  return fds;
}

Courier::Outcome Courier::SendFds(Delivery& delivery, const std::vector<ub::UniqueFd>& fds) {
  std::vector<int> numbers;
  numbers.reserve(fds.size());
  for (const ub::UniqueFd& fd : fds) numbers.push_back(fd.get());
  const size_t total = delivery.grant.blocks.size();
  absl::Status sent = HungUp();
  bool all = false;
  {
    ub::MutexLock lock(&mu_);
    if (!closed_) {
      ub::wire::Grant frame = FrameFor(delivery.grant, delivery.number, delivery.sent, fds.size());
      sent = ub::wire::SendPacket(lifeline_.get(), ub::wire::AsBytes(frame), numbers);
    }
    if (sent.ok()) {
      delivery.sent += fds.size();
      back_off_ = absl::ZeroDuration();
    }
    all = delivery.sent == total;
  }
  if (sent.ok()) {
    context_->credits.Sent(session_, fds.size());
    delivery.Answer(absl::OkStatus());
    return all ? Outcome::kDone : Outcome::kSent;
  }
  context_->credits.Unsent(session_, fds.size());
  switch (ErrnoOf(sent)) {
    case EAGAIN:
      return Outcome::kOwnWait;
    case ETOOMANYREFS:
    case ENOBUFS:
    case ENOMEM:
      return Outcome::kBackOff;
    case 0:
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return Drop(delivery, HungUp());
    default:
      return Fail(delivery, sent);
  }
}

Courier::Outcome Courier::Fail(Delivery& delivery, const absl::Status& why) {
  SendGrantFailed(delivery, why);
  context_->broker.FailDelivery(session_, delivery.grant.lease);
  delivery.Answer(why);
  return Outcome::kDone;
}

Courier::Outcome Courier::Drop(Delivery& delivery, const absl::Status& why) {
  // A client that got a part must know that the rest will not come; one that got nothing learns it from its RPC.
  if (delivery.sent > 0) SendGrantFailed(delivery, why);
  delivery.Answer(why);
  return Outcome::kDone;
}

// Nothing waits here: who asks for a queue gets it now or asks again.
absl::Status Courier::DeliverQueue(const ub::wire::QueueGrant& grant, ub::UniqueFd memory, ub::UniqueFd event) {
  constexpr size_t kFds = 2;
  const FdCredits::Wait wait = context_->credits.Take(session_, kFds);
  absl::Status sent = HungUp();
  bool closed;
  {
    ub::MutexLock lock(&mu_);
    closed = closed_;
    if (!closed_ && wait != FdCredits::Wait::kNone) return DoesNotRead();
    if (!closed_) {
      const std::array<int, kFds> fds = {memory.get(), event.get()};
      sent = ub::wire::SendPacket(lifeline_.get(), ub::wire::AsBytes(grant), fds);
    }
  }
  if (wait == FdCredits::Wait::kNone) {
    sent.ok() ? context_->credits.Sent(session_, kFds) : context_->credits.Unsent(session_, kFds);
    // Close saw the reservation and waits for its end.
    if (closed) PostCheckTaken();
  }
  if (sent.ok()) return sent;
  switch (ErrnoOf(sent)) {
    case EAGAIN:
    case ETOOMANYREFS:
    case ENOBUFS:
    case ENOMEM:
      return DoesNotRead();
    default:
      return HungUp();
  }
}

absl::StatusOr<ub::wire::Packet> Courier::Receive(bool with_fds) {
  ub::MutexLock lock(&mu_);
  if (closed_) return ub::wire::Packet();
  return with_fds ? ub::wire::ReceivePacket(lifeline_.get()) : ub::wire::ReceiveBytes(lifeline_.get());
}

void Courier::ListenTo(bool sent) {
  ub::MutexLock lock(&mu_);
  peer_events_ = sent ? (EPOLLIN | EPOLLRDHUP) : EPOLLRDHUP;
  if (!closed_) context_->loop->Rearm(watch_, watches_reading_ ? peer_events_ | EPOLLOUT | EPOLLET : peer_events_);
}

bool Courier::Lend(const std::function<bool(int)>& use) {
  ub::MutexLock lock(&mu_);
  return use(closed_ ? -1 : lifeline_.get());
}

void Courier::SendGrantFailed(const Delivery& delivery, const absl::Status& why) {
  auto frame = ub::wire::NewFrame<ub::wire::GrantFailed>();
  frame.lease = delivery.grant.lease.value();
  frame.generation = delivery.grant.generation.value();
  frame.code = static_cast<int32_t>(why.code());
  ub::wire::SetText(frame.reason, ub::ReasonName(ub::ReasonOf(why)));
  ub::wire::SetText(frame.text, std::string_view(why.message().data(), why.message().size()));
  ub::MutexLock lock(&mu_);
  // If it does not fit, the client does not read; the end of the lease reaches it by its event stream as well.
  if (!closed_) (void)ub::wire::SendPacket(lifeline_.get(), ub::wire::AsBytes(frame), {});
}

}  // namespace ubd
