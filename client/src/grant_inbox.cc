#include "client/src/grant_inbox.h"

#include <poll.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ub {
namespace {

constexpr size_t kMaxStashedFds = 2 * wire::kMaxFdsPerFrame;
constexpr size_t kMaxUnawaited = 64;
constexpr size_t kRemembered = 64;

absl::Status TooFewFds() {
  return MakeError(absl::StatusCode::kResourceExhausted, Reason::kClientFdLimit,
                   "this process has no file descriptors left to take the granted memory in; raise its limit (ulimit "
                   "-n) or close some");
}

bool IsEagain(const absl::Status& status) { return DetailOf(status, "errno") == absl::StrCat(EAGAIN); }

}  // namespace

GrantInbox::Expectation::Expectation(GrantInbox& inbox) : inbox_(inbox) {
  MutexLock lock(&inbox_.mu_);
  ++inbox_.expected_;
}

GrantInbox::Expectation::~Expectation() {
  MutexLock lock(&inbox_.mu_);
  if (--inbox_.expected_ > 0) return;
  inbox_.DropUnawaited(0);
  inbox_.queues_.clear();
}

absl::Status GrantInbox::Receive(const GrantWanted& wanted, Deadline deadline, const TakeFds& take) {
  MutexLock lock(&mu_);
  Delivery& delivery = deliveries_[wanted.lease.value()];
  delivery.awaited = true;
  absl::Status result = Collect(wanted, delivery, deadline, take);
  if (delivery.started) over_.emplace_back(wanted.lease.value(), delivery.number);
  if (over_.size() > kRemembered) over_.pop_front();
  deliveries_.erase(wanted.lease.value());
  changed_.SignalAll();
  return result;
}

absl::Status GrantInbox::Collect(const GrantWanted& wanted, Delivery& delivery, Deadline deadline,
                                 const TakeFds& take) {
  uint64_t done = 0;
  while (done < wanted.blocks) {
    if (delivery.batches.empty()) {
      if (absl::Status bad = CheckOrWait(wanted, delivery, deadline); !bad.ok()) return bad;
      continue;
    }
    if (delivery.generation != wanted.generation.value() || delivery.total != wanted.blocks ||
        delivery.access != static_cast<uint32_t>(wanted.access)) {
      return MalformedLifeline("a grant differs from the answer to the request");
    }
    Batch batch = std::move(delivery.batches.front());
    delivery.batches.pop_front();
    changed_.SignalAll();  // a reader may wait for room
    mu_.Unlock();
    absl::Status taken = take(batch.first, batch.fds);
    size_t count = batch.fds.size();
    batch.fds.clear();
    mu_.Lock();
    if (!taken.ok()) return taken;
    done = batch.first + count;
  }
  return absl::OkStatus();
}

absl::Status GrantInbox::CheckOrWait(const GrantWanted& wanted, const Delivery& delivery, Deadline deadline) {
  if (!delivery.failed.ok()) return delivery.failed;
  if (!broken_.ok()) return broken_;
  if (deadline.passed()) {
    return MakeError(absl::StatusCode::kUnavailable, Reason::kNotAnswering,
                     absl::StrCat("ubd granted the lease but did not send its memory in time (", delivery.next, " of ",
                                  wanted.blocks, " blocks came); is it stopped or overloaded?"));
  }
  if (reading_ || OthersMustTakeFirst(delivery)) {
    changed_.WaitWithTimeout(&mu_, deadline.left());
  } else {
    ReadOne(deadline);
  }
  return absl::OkStatus();
}

void GrantInbox::ReadOne(Deadline deadline) {
  reading_ = true;
  mu_.Unlock();
  pollfd ready = {.fd = lifeline_, .events = POLLIN, .revents = 0};
  ::poll(&ready, 1, deadline.poll_ms());
  absl::StatusOr<wire::Packet> packet = wire::ReceivePacket(lifeline_);
  mu_.Lock();
  reading_ = false;
  Handle(std::move(packet));
  changed_.SignalAll();
}

void GrantInbox::Handle(absl::StatusOr<wire::Packet> packet) {
  if (!packet.ok()) {
    if (!IsEagain(packet.status())) broken_ = packet.status();
    return;
  }
  if (packet->bytes.empty()) {
    broken_ = SessionEnded();
    return;
  }
  absl::StatusOr<wire::Frame> frame = wire::ParseFrame(packet->bytes);
  if (!frame.ok()) {
    broken_ = frame.status();
  } else if (const auto* grant = std::get_if<wire::Grant>(&*frame)) {
    HandleGrant(*grant, *std::move(packet));
  } else if (const auto* queue = std::get_if<wire::QueueGrant>(&*frame)) {
    HandleQueue(*queue, *std::move(packet));
  } else if (const auto* failure = std::get_if<wire::GrantFailed>(&*frame)) {
    HandleFailure(*failure);
  } else {
    broken_ = MalformedLifeline("a frame that does not belong after the handshake");
  }
}

void GrantInbox::HandleGrant(const wire::Grant& grant, wire::Packet packet) {
  if (expected_ == 0 || IsOver(grant.lease, grant.delivery)) return;
  Delivery& delivery = deliveries_[grant.lease];
  if (delivery.started && grant.delivery < delivery.number) return;
  if (!delivery.started || grant.delivery > delivery.number) {
    delivery = {.started = true,
                .number = grant.delivery,
                .generation = grant.generation,
                .total = grant.total,
                .access = grant.access,
                .failed = absl::OkStatus(),
                .awaited = delivery.awaited};
  }
  if (!delivery.failed.ok()) return;
  bool sound = grant.count >= 1 && grant.count <= wire::kMaxFdsPerFrame && grant.first == delivery.next &&
               grant.total == delivery.total && grant.first < grant.total && grant.count <= grant.total - grant.first &&
               grant.generation == delivery.generation && packet.fds.size() <= grant.count;
  if (!sound) {
    delivery.failed = MalformedLifeline("a grant whose numbers do not fit");
  } else if (packet.fds_truncated) {
    delivery.failed = TooFewFds();
  } else if (packet.fds.size() != grant.count) {
    delivery.failed = MalformedLifeline("a grant with too few file descriptors");
  }
  if (!delivery.failed.ok()) {
    delivery.batches.clear();
    return;
  }
  delivery.next = grant.first + grant.count;
  delivery.batches.push_back({grant.first, std::move(packet.fds)});
  DropUnawaited(kMaxUnawaited);
}

absl::StatusOr<QueueFds> GrantInbox::ReceiveQueue(uint32_t queue, Deadline deadline) {
  MutexLock lock(&mu_);
  while (true) {
    if (auto it = queues_.find(queue); it != queues_.end()) {
      QueueDelivery delivery = std::move(it->second);
      queues_.erase(it);
      if (!delivery.failed.ok()) return delivery.failed;
      return std::move(delivery.fds);
    }
    if (!broken_.ok()) return broken_;
    if (deadline.passed()) {
      return MakeError(absl::StatusCode::kUnavailable, Reason::kNotAnswering,
                       "ubd opened the queue but did not send its memory in time; is it stopped or overloaded?");
    }
    if (reading_) {
      changed_.WaitWithTimeout(&mu_, deadline.left());
    } else {
      ReadOne(deadline);
    }
  }
}

void GrantInbox::HandleQueue(const wire::QueueGrant& grant, wire::Packet packet) {
  if (expected_ == 0 || queues_.size() >= kMaxUnawaited) return;
  QueueDelivery delivery;
  if (packet.fds_truncated) {
    delivery.failed = TooFewFds();
  } else if (packet.fds.size() != 2) {
    delivery.failed = MalformedLifeline("a queue's grant without its two file descriptors");
  } else {
    delivery.fds = {.frame = grant, .memory = std::move(packet.fds[0]), .event = std::move(packet.fds[1])};
  }
  queues_.insert_or_assign(grant.queue, std::move(delivery));
}

void GrantInbox::HandleFailure(const wire::GrantFailed& failure) {
  if (expected_ == 0) return;
  Delivery& delivery = deliveries_[failure.lease];
  delivery.batches.clear();
  delivery.failed = FromWire(failure.code, wire::GetText(failure.reason), wire::GetText(failure.text));
  DropUnawaited(kMaxUnawaited);
}

bool GrantInbox::OthersMustTakeFirst(const Delivery& mine) const {
  size_t fds = 0;
  for (const auto& [lease, delivery] : deliveries_) {
    if (&delivery == &mine || !delivery.awaited) continue;
    for (const Batch& batch : delivery.batches) fds += batch.fds.size();
  }
  return fds >= kMaxStashedFds;
}

void GrantInbox::DropUnawaited(size_t keep) {
  size_t found = 0;
  for (const auto& [lease, delivery] : deliveries_) found += delivery.awaited ? 0 : 1;
  // Smaller ids are older leases.
  for (auto it = deliveries_.begin(); it != deliveries_.end() && found > keep;) {
    if (it->second.awaited) {
      ++it;
      continue;
    }
    it = deliveries_.erase(it);
    --found;
  }
}

bool GrantInbox::IsOver(uint64_t lease, uint64_t number) const {
  for (const auto& [over_lease, over_number] : over_) {
    if (over_lease == lease && number <= over_number) return true;
  }
  return false;
}

void GrantInbox::DrainIfIdle() {
  MutexLock lock(&mu_);
  while (expected_ == 0 && !reading_ && broken_.ok()) {
    absl::StatusOr<wire::Packet> packet = wire::ReceivePacket(lifeline_);
    bool empty = !packet.ok() && IsEagain(packet.status());
    if (empty) return;
    Handle(std::move(packet));
  }
}

}  // namespace ub
