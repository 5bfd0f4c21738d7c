#include "daemon/engine/served_queue.h"

#include <algorithm>

namespace ubd {
namespace {

using ub::wire::QueueIndices;
using ub::wire::QueueState;

const char* StateName(QueueState state, uint64_t in_flight) {
  if (state == QueueState::kBroken) return "broken";
  if (state == QueueState::kOpen) return "open";
  return in_flight != 0 ? "draining" : "closed";
}

}  // namespace

QueueListing ServedQueue::List(uint64_t now_ns) const {
  QueueListing listing;
  listing.session = session->id;
  listing.id = id;
  listing.state = StateName(static_cast<QueueState>(state.read()), in_flight.read());
  listing.policy = policy;
  listing.depth = memory->layout().sq_entries;
  // For people only, so the client's word on its own indices will do, cut to what can be.
  const auto* indices =
      reinterpret_cast<const QueueIndices*>(static_cast<const char*>(memory->data()) + ub::wire::kQueueIndicesOffset);
  const uint32_t entries = indices->sq_tail.load() - indices->sq_head.load();
  const uint32_t results = indices->cq_tail.load() - indices->cq_head.load();
  listing.waiting = std::min(entries, memory->layout().sq_entries);
  listing.unread = std::min(results, memory->layout().cq_entries);
  listing.in_flight = in_flight.read();
  const uint64_t oldest = oldest_ns.read();
  if (oldest != 0) listing.oldest = absl::Nanoseconds(now_ns > oldest ? now_ns - oldest : 0);
  listing.submitted = submitted.read();
  listing.completed = completed.read();
  listing.failed = failed.read();
  listing.bytes = bytes.read();
  listing.polls = polls.read();
  listing.empty_polls = empty_polls.read();
  listing.sleeps = sleeps.read();
  return listing;
}

}  // namespace ubd
