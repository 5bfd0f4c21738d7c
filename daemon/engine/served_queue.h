// One queue in its lane: the ring, whether it is polled or asleep, and its transfers. But for the counts, which anybody
// may read, everything belongs to the lane's thread.
#ifndef UBD_ENGINE_SERVED_QUEUE_H_
#define UBD_ENGINE_SERVED_QUEUE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/engine/engine.h"
#include "daemon/engine/engine_session.h"
#include "daemon/engine/queue_memory.h"
#include "daemon/engine/queue_ring.h"
#include "daemon/engine/transfer.h"
#include "proto/wire/adaptive_spin.h"

namespace ubd {

// Written by one thread, read by any.
class Tally {
 public:
  void Add(uint64_t n = 1) { value_.store(read() + n, std::memory_order_relaxed); }
  void Set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

class ServedQueue {
 public:
  ServedQueue(std::shared_ptr<EngineSession> owner, uint32_t number, ub::wire::PathPolicy queue_policy,
              std::unique_ptr<QueueMemory> queue_memory, uint64_t spin_ns)
      : session(std::move(owner)),
        id(number),
        policy(queue_policy),
        memory(std::move(queue_memory)),
        ring(memory->data(), memory->layout(), number),
        spin(spin_ns, ub::AdaptiveSpin::kDaemonProbe) {}

  const std::shared_ptr<EngineSession> session;
  const uint32_t id;
  const ub::wire::PathPolicy policy;
  const std::unique_ptr<QueueMemory> memory;

  // --- the lane's
  QueueRing ring;
  ub::AdaptiveSpin spin;
  uint64_t poll_from_ns = 0;  // the last event; polled from here on for the spin's budget
  enum class Place : uint8_t {
    kPolled,   // looked at in every round
    kReady,    // has entries to take: in the line
    kAsleep,   // the client rings
    kNoPlace,  // its session has too much in flight: waits for EngineSession::Leave
    kNoRoom,   // completions are unread: looked at now and then
    kEnded,    // closed or broken: drains
  };
  Place place = Place::kPolled;
  bool touched = false;  // something is to be published
  bool closing = false;  // gone once the last transfer is done
  FlyingList flying;
  std::array<WaitingList, kPorts> waiting;
  static constexpr size_t kUnlisted = SIZE_MAX;
  size_t listed_at = kUnlisted;  // in the lane's list of polled queues

  // --- anybody's
  Tally submitted, completed, failed, bytes, in_flight, polls, empty_polls, sleeps;
  Tally oldest_ns;  // when the oldest transfer in flight was taken; 0: none
  Tally state;      // ub::wire::QueueState
  QueueListing List(uint64_t now_ns) const;
};

}  // namespace ubd

#endif  // UBD_ENGINE_SERVED_QUEUE_H_
