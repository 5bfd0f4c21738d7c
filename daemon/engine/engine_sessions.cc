// The engine's table: sessions, queues, files, listings.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/engine/engine_impl.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

using ub::wire::PathReason;

bool CanBe(uint32_t entries, uint32_t least, uint32_t most) {
  return entries >= least && entries <= most && (entries & (entries - 1)) == 0;
}

absl::Status BadSize(const char* field, uint32_t least, uint32_t most) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadField,
                       absl::StrCat(field, " must be a power of two from ", least, " to ", most), {{"field", field}});
}

absl::Status CheckSizes(const QueueRequest& request) {
  constexpr uint32_t kMost = ub::wire::kMaxQueueEntries;
  if (!CanBe(request.sq_entries, ub::wire::kMinQueueEntries, kMost)) {
    return BadSize("sq_entries", ub::wire::kMinQueueEntries, kMost);
  }
  if (!CanBe(request.cq_entries, request.sq_entries, 2 * kMost)) {
    return BadSize("cq_entries", request.sq_entries, 2 * kMost);
  }
  return absl::OkStatus();
}

}  // namespace

void EngineImpl::OpenSession(SessionId session, Uid uid, int32_t pid) {
  ub::MutexLock lock(&mu_);
  sessions_[session].session = std::make_shared<EngineSession>(session, uid, pid);
}

void EngineImpl::CloseSession(SessionId session) {
  std::vector<Entry> closing;
  std::shared_ptr<EngineSession> ended;
  {
    ub::MutexLock lock(&mu_);
    auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    ended = std::move(found->second.session);
    sessions_.erase(found);
    for (auto at = queues_.lower_bound({session, 0}); at != queues_.end() && at->first.first == session; ++at) {
      if (!at->second.closing) closing.push_back(at->second);
      at->second.closing = true;
    }
  }
  for (Entry& entry : closing) entry.lane->Close(std::move(entry.queue));
  ended->CloseFiles();
}

absl::StatusOr<std::shared_ptr<EngineSession>> EngineImpl::FindSession(SessionId session) const {
  ub::MutexLock lock(&mu_);
  auto found = sessions_.find(session);
  if (found != sessions_.end()) return found->second.session;
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded,
                       "the session has ended; connect anew");
}

absl::Status EngineImpl::MayOpen(const Member& member) const {
  const uint32_t most = shared_->options.max_queues_per_session;
  if (member.open_queues < most) return absl::OkStatus();
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyQueues,
                       "the session has as many queues as it may; close some of them",
                       {{"limit", std::to_string(most)}});
}

Lane& EngineImpl::LeastBusy() const {
  Lane* best = lanes_.front().get();
  for (const auto& lane : lanes_) {
    if (lane->queues() < best->queues()) best = lane.get();
  }
  return *best;
}

absl::StatusOr<OpenedQueue> EngineImpl::OpenQueue(const QueueRequest& request) {
  absl::Status sizes = CheckSizes(request);
  if (!sizes.ok()) return sizes;
  if (shared_->stopping.load()) {
    return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kStopping, "ubd is stopping");
  }
  absl::StatusOr<std::shared_ptr<EngineSession>> session = FindSession(request.session);
  if (!session.ok()) return session.status();
  OpenedQueue opened;
  opened.layout = {request.sq_entries, request.cq_entries};
  const uint64_t spin_ns = static_cast<uint64_t>(absl::ToInt64Nanoseconds(shared_->options.spin));
  Lane& lane = LeastBusy();
  std::shared_ptr<ServedQueue> queue;
  {
    ub::MutexLock lock(&mu_);
    auto found = sessions_.find(request.session);
    if (found == sessions_.end()) {
      return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded, "the session has ended");
    }
    absl::Status may = MayOpen(found->second);
    if (!may.ok()) return may;
    // The lock is held over the making of the memory (microseconds), so that the count cannot be overrun.
    absl::StatusOr<std::unique_ptr<QueueMemory>> memory = QueueMemory::Create(opened.layout);
    if (!memory.ok()) return memory.status();
    opened.memory = (*memory)->TakeClientMemory();
    opened.event = (*memory)->TakeClientEvent();
    opened.id = found->second.next_queue++;
    ++found->second.open_queues;
    queue = std::make_shared<ServedQueue>(*std::move(session), opened.id, request.policy, *std::move(memory), spin_ns);
    queues_[{request.session, opened.id}] = {queue, &lane, false};
    // Under the lock, too: a close that comes meanwhile must come second.
    lane.Add(std::move(queue));
  }
  return opened;
}

absl::Status EngineImpl::CloseQueue(SessionId session, uint32_t queue) {
  Entry entry;
  {
    ub::MutexLock lock(&mu_);
    auto found = queues_.find({session, queue});
    if (found == queues_.end() || found->second.closing) {
      return ub::MakeError(absl::StatusCode::kNotFound, ub::Reason::kNoSuchQueue,
                           absl::StrCat("the session has no open queue ", queue));
    }
    found->second.closing = true;
    entry = found->second;
  }
  entry.lane->Close(std::move(entry.queue));
  return absl::OkStatus();
}

// A draining queue counts until it is gone: else closing and opening would be a way around the limit.
void EngineImpl::QueueGone(const ServedQueue& queue) {
  ub::MutexLock lock(&mu_);
  queues_.erase({queue.session->id, queue.id});
  auto member = sessions_.find(queue.session->id);
  if (member != sessions_.end()) --member->second.open_queues;
}

absl::StatusOr<Engine::OpenedFile> EngineImpl::OpenFile(SessionId session, ub::UniqueFd file) {
  absl::StatusOr<std::shared_ptr<EngineSession>> owner = FindSession(session);
  if (!owner.ok()) return owner.status();
  const uint32_t most = shared_->options.max_files_per_session;
  absl::Status may = (*owner)->MayAddFile(most);
  if (!may.ok()) return may;
  absl::StatusOr<std::shared_ptr<FileTarget>> target =
      FileTarget::Open(std::move(file), (*owner)->pid, shared_->options.files);
  if (!target.ok()) return target.status();
  OpenedFile opened;
  opened.facts = (*target)->facts();
  if (!opened.facts.trusted) return opened;
  if (!no_engine_.empty()) {
    opened.facts.trusted = false;
    opened.facts.direct = false;
    opened.facts.why_not = PathReason::kNoEngine;
    return opened;
  }
  absl::StatusOr<uint32_t> handle = (*owner)->AddFile(*std::move(target), most);
  if (!handle.ok()) return handle.status();
  opened.handle = *handle;
  return opened;
}

absl::Status EngineImpl::CloseFile(SessionId session, uint32_t handle) {
  absl::StatusOr<std::shared_ptr<EngineSession>> owner = FindSession(session);
  if (!owner.ok()) return owner.status();
  if ((*owner)->RemoveFile(handle)) return absl::OkStatus();
  return ub::MakeError(absl::StatusCode::kNotFound, ub::Reason::kNoSuchFile,
                       absl::StrCat("the session has no file ", handle));
}

PathStatus EngineImpl::Paths() const {
  PathStatus status;
  status.policy = shared_->policy.load();
  status.min_direct_storage = Bytes(shared_->min_direct_storage.load());
  status.min_direct_network = Bytes(shared_->min_direct_network.load());
  status.file_engine = no_engine_.empty() ? "io_uring" : no_engine_;
  status.counts = shared_->counts.Read();
  status.registration = watched_.empty() ? "nothing to register with" : watched_.front()->Text();
  status.registered = !watched_.empty();
  for (const auto& ring : watched_) {
    if (ring->All()) continue;
    status.registered = false;
    status.registration = ring->Text();
  }
  return status;
}

std::vector<QueueListing> EngineImpl::Queues() const {
  std::vector<std::shared_ptr<ServedQueue>> queues;
  {
    ub::MutexLock lock(&mu_);
    for (const auto& [key, entry] : queues_) queues.push_back(entry.queue);
  }
  std::vector<QueueListing> listings;
  listings.reserve(queues.size());
  const uint64_t now = MonoNs();
  for (const auto& queue : queues) listings.push_back(queue->List(now));
  return listings;
}

}  // namespace ubd
