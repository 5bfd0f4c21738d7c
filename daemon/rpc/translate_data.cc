#include "daemon/rpc/translate_data.h"

#include <algorithm>

#include "daemon/rpc/text.h"
#include "proto/wire/queue_names.h"

namespace ubd {
namespace {

// Never negative: a clock read a moment later must not show an age as a huge number.
uint64_t Nanoseconds(absl::Duration d) {
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(d)));
}

}  // namespace

ub::v1::Queue ToProto(const QueueListing& queue, const SessionFacts* owner) {
  ub::v1::Queue proto;
  proto.set_session(queue.session.value());
  proto.set_id(queue.id);
  if (owner != nullptr) {
    proto.set_pid(owner->pid);
    proto.set_uid(owner->uid.value());
    proto.set_name(CleanText(owner->name));
  }
  proto.set_state(queue.state);
  proto.set_policy(ub::wire::PathPolicyName(queue.policy));
  proto.set_depth(queue.depth);
  proto.set_waiting(queue.waiting);
  proto.set_in_flight(queue.in_flight);
  if (queue.oldest) proto.set_oldest_ns(Nanoseconds(*queue.oldest));
  proto.set_unread(queue.unread);
  proto.set_submitted(queue.submitted);
  proto.set_completed(queue.completed);
  proto.set_failed(queue.failed);
  proto.set_bytes(queue.bytes);
  proto.set_polls(queue.polls);
  proto.set_empty_polls(queue.empty_polls);
  proto.set_sleeps(queue.sleeps);
  return proto;
}

ub::v1::PathStatus ToProto(const PathStatus& status) {
  ub::v1::PathStatus proto;
  proto.set_policy(ub::wire::PathPolicyName(status.policy));
  proto.set_min_direct_bytes(status.min_direct_storage.count());
  proto.set_file_engine(status.file_engine);
  proto.set_registered(status.registered);
  proto.set_registration(status.registration);
  for (const PathCounter& counter : status.counts) {
    ub::v1::PathCount* count = proto.add_counts();
    count->set_path(ub::wire::PathName(counter.path));
    count->set_reason(ub::wire::PathReasonName(counter.reason));
    count->set_from(ub::wire::MemoryKindName(counter.from));
    count->set_to(ub::wire::MemoryKindName(counter.to));
    count->set_transfers(counter.transfers);
    count->set_bytes(counter.bytes);
    count->set_failed(counter.failed);
  }
  return proto;
}

ub::v1::OpenQueueResponse ToProto(const OpenedQueue& queue, const EngineOptions& options, const PathStatus& paths) {
  ub::v1::OpenQueueResponse proto;
  proto.set_queue(queue.id);
  proto.set_sq_entries(queue.layout.sq_entries);
  proto.set_cq_entries(queue.layout.cq_entries);
  proto.set_client_spin_ns(Nanoseconds(options.client_spin));
  proto.set_most_in_flight(options.max_in_flight_per_session);
  proto.set_small_network_bytes(paths.min_direct_network.count());
  proto.set_small_storage_bytes(paths.min_direct_storage.count());
  return proto;
}

ub::v1::OpenFileResponse ToProto(const Engine::OpenedFile& file, ub::wire::PathPolicy node_policy) {
  const FileFacts& facts = file.facts;
  ub::v1::OpenFileResponse proto;
  proto.set_file(file.handle);
  proto.set_readable(facts.readable);
  proto.set_writable(facts.writable);
  proto.set_direct(facts.direct);
  proto.set_path_reason(static_cast<uint32_t>(facts.why_not));
  proto.set_memory_align(facts.memory_align);
  proto.set_offset_align(facts.offset_align);
  proto.set_own_description(facts.own_description);
  proto.set_file_system(CleanText(facts.file_system));
  proto.set_bytes(facts.bytes);
  proto.set_node_policy(static_cast<ub::v1::PathPolicy>(node_policy));
  return proto;
}

}  // namespace ubd
