#include "client/src/session_transfers.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "client/src/queue_impl.h"
#include "client/src/quiet_thread.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"

namespace ub {
namespace {

constexpr absl::Duration kCloseDeadline = absl::Seconds(5);
constexpr absl::Duration kFarewell = absl::Seconds(2);

bool HasErrno(const absl::Status& status, int error) { return DetailOf(status, "errno") == absl::StrCat(error); }

absl::Status CheckOptions(const QueueOptions& options) {
  bool power = options.depth != 0 && (options.depth & (options.depth - 1)) == 0;
  if (power && options.depth >= wire::kMinQueueEntries && options.depth <= wire::kMaxQueueEntries)
    return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("QueueOptions.depth: ", options.depth, " is not a power of two from ",
                                wire::kMinQueueEntries, " to ", wire::kMaxQueueEntries),
                   {{"field", "depth"}});
}

}  // namespace

SessionTransfers::~SessionTransfers() { Stop(); }

void SessionTransfers::EndAll() {
  ended_.store(true);
  MutexLock lock(&mu_);
  for (QueueRingClient* ring : rings_) ring->End();
}

void SessionTransfers::Stop() {
  EndAll();
  std::list<Drainer> all;
  {
    MutexLock lock(&mu_);
    all.swap(drainers_);
  }
  for (Drainer& drainer : all) drainer.thread.join();
  later_.AwaitIdle(kFarewell);
}

absl::StatusOr<uint64_t> SessionTransfers::Offer(int fd, Deadline deadline) {
  auto offer = wire::NewFrame<wire::Offer>();
  offer.offer = next_offer_.fetch_add(1);
  while (true) {
    absl::Status sent = wire::SendPacket(lifeline_, wire::AsBytes(offer), absl::Span<const int>(&fd, 1));
    if (sent.ok()) return offer.offer;
    if (HasErrno(sent, EPIPE) || HasErrno(sent, ECONNRESET) || HasErrno(sent, ENOTCONN)) return SessionEnded();
    if (!HasErrno(sent, EAGAIN)) return sent;
    if (deadline.passed()) return NotAnswering();
    pollfd writable = {.fd = lifeline_, .events = POLLOUT, .revents = 0};
    ::poll(&writable, 1, deadline.poll_ms());
  }
}

// What was closed before must not count against the limits of what is opened now.
absl::Status SessionTransfers::AwaitEarlierCalls(Deadline deadline) {
  if (ended_.load()) return SessionEnded();
  later_.AwaitIdle(deadline.left());
  return absl::OkStatus();
}

absl::StatusOr<QueueParts> SessionTransfers::OpenQueue(const QueueOptions& options, Deadline deadline) {
  if (absl::Status bad = CheckOptions(options); !bad.ok()) return bad;
  if (absl::Status gone = AwaitEarlierCalls(deadline); !gone.ok()) return gone;
  v1::OpenQueueRequest request;
  request.set_sq_entries(options.depth);
  request.set_policy(static_cast<v1::PathPolicy>(options.path));
  GrantInbox::Expectation expectation(inbox_);
  absl::StatusOr<v1::OpenQueueResponse> opened = rpc_.OpenQueue(request, deadline);
  if (!opened.ok()) return opened.status();
  QueueParts parts;
  parts.shape = {.id = opened->queue(),
                 .layout = {.sq_entries = opened->sq_entries(), .cq_entries = opened->cq_entries()},
                 .spin_ns = opened->client_spin_ns()};
  parts.batch_bytes = Bytes(opened->small_storage_bytes());
  absl::StatusOr<QueueFds> fds = inbox_.ReceiveQueue(parts.shape.id, deadline);
  absl::Status bad = fds.status();
  if (bad.ok()) {
    auto ring = QueueRingClient::Map(std::move(fds->memory), std::move(fds->event), parts.shape);
    bad = ring.status();
    if (bad.ok()) parts.ring = *std::move(ring);
  }
  if (bad.ok()) return parts;
  TellClosed(parts.shape.id);
  return bad;
}

void SessionTransfers::TellClosed(uint32_t queue) {
  later_.Add([this, queue] {
    if (!ended_.load()) rpc_.CloseQueue(queue, Deadline::After(kCloseDeadline)).IgnoreError();
  });
}

void SessionTransfers::CloseQueue(std::unique_ptr<QueueImpl> queue) {
  uint32_t id = queue->id();
  queue->Advance();
  if (queue->idle()) {
    queue.reset();
    TellClosed(id);
    return;
  }
  std::list<Drainer> finished;
  {
    MutexLock lock(&mu_);
    JoinFinished(finished);
    Drainer& drainer = drainers_.emplace_back();
    std::shared_ptr<QueueImpl> shared = std::move(queue);
    drainer.thread = StartQuietly("ub-drain", [this, &drainer, shared, id]() mutable {
      shared->Drain();
      shared.reset();
      TellClosed(id);
      drainer.finished.store(true);
    });
  }
  for (Drainer& drainer : finished) drainer.thread.join();
}

void SessionTransfers::JoinFinished(std::list<Drainer>& finished) {
  for (auto it = drainers_.begin(); it != drainers_.end();) {
    auto next = std::next(it);
    if (it->finished.load()) finished.splice(finished.end(), drainers_, it);
    it = next;
  }
}

absl::StatusOr<FileFacts> SessionTransfers::OpenFile(int fd, Deadline deadline) {
  if (absl::Status gone = AwaitEarlierCalls(deadline); !gone.ok()) return gone;
  absl::StatusOr<uint64_t> offer = Offer(fd, deadline);
  if (!offer.ok()) return offer.status();
  absl::StatusOr<v1::OpenFileResponse> opened = rpc_.OpenFile(*offer, deadline);
  if (!opened.ok()) return opened.status();
  return FileFacts{.handle = opened->file(),
                   .readable = opened->readable(),
                   .writable = opened->writable(),
                   .direct = opened->direct(),
                   .why_not = static_cast<wire::PathReason>(std::min<uint32_t>(opened->path_reason(), UINT8_MAX)),
                   .offset_align = Bytes(opened->offset_align()),
                   .file_system = opened->file_system(),
                   .size = Bytes(opened->bytes()),
                   .node_policy = static_cast<wire::PathPolicy>(opened->node_policy())};
}

void SessionTransfers::CloseFile(uint32_t handle) {
  later_.Add([this, handle] {
    if (!ended_.load()) rpc_.CloseFile(handle, Deadline::After(kCloseDeadline)).IgnoreError();
  });
}

void SessionTransfers::AddRing(QueueRingClient* ring) {
  MutexLock lock(&mu_);
  rings_.push_back(ring);
  if (ended_.load()) ring->End();
}

void SessionTransfers::RemoveRing(QueueRingClient* ring) {
  MutexLock lock(&mu_);
  std::erase(rings_, ring);
}

}  // namespace ub
