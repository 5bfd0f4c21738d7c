// One real lane, with its thread, over a ring whose pieces end when the test says, and a real copy thread.
#ifndef UBD_TESTS_UNIT_ENGINE_LANE_RIG_H_
#define UBD_TESTS_UNIT_ENGINE_LANE_RIG_H_

#include <atomic>
#include <memory>
#include <utility>

#include "daemon/engine/copy_lane.h"
#include "daemon/engine/lane.h"
#include "tests/unit/engine/dispatcher_rig.h"

namespace ubd {

inline uint64_t FromNow(uint64_t ms) { return MonoNs() + ms * 1'000'000; }

// Looks until it is so; false after ten seconds.
template <class Condition>
bool Until(Condition condition) {
  const uint64_t until = FromNow(10'000);
  while (!condition()) {
    if (MonoNs() > until) return false;
    sched_yield();
  }
  return true;
}

struct LaneRig {
  explicit LaneRig(const EngineOptions& options = DispatcherRig::SmallOptions(), uint32_t blocks = 4)
      : core(blocks), memory(blocks, kBlock), shared(options, memory) {
    shared.broker = core.broker.get();
    shared.queue_gone = [this](const ServedQueue&) { ++gone; };
    shared.session_has_room = [this] { lane->LookAtHeldBack(); };
    auto fake = std::make_unique<FakeRing>(64);
    ring = fake.get();
    EXPECT_EQ(memory.RegisterWith(ring), absl::OkStatus());
    lane = *Lane::Create(shared, std::move(fake), nullptr, &copy);
    copy.Start({.name = "ubd-copy"});
    lane->Start({.name = "ubd-lane-0"});
  }
  ~LaneRig() {
    while (!ring->posted().empty()) ring->End();
    shared.stopping = true;
    lane->BeginStop();
    EXPECT_TRUE(lane->WaitIdle(FromNow(10'000)));
    lane->Quit();
    EXPECT_TRUE(lane->WaitEnd(FromNow(10'000)));
  }
  Tenant Open(Uid uid, uint32_t sq = 64, uint32_t cq = 128, uint64_t spin_ns = 20'000) {
    Tenant tenant;
    const SessionId id = core.Open(uid);
    tenant.session = std::make_shared<EngineSession>(id, uid, 1);
    tenant.lease = core.Take(id);
    tenant.file = std::make_shared<FakeFile>();
    tenant.handle = *tenant.session->AddFile(tenant.file, 1000);
    AddQueue(tenant, sq, cq, spin_ns);
    return tenant;
  }
  void AddQueue(Tenant& tenant, uint32_t sq, uint32_t cq, uint64_t spin_ns) {
    auto queue_memory = *QueueMemory::Create({sq, cq});
    tenant.client =
        std::make_unique<RingClient>(queue_memory->data(), queue_memory->layout(), queue_memory->event_fd());
    tenant.queue = std::make_shared<ServedQueue>(tenant.session, 1, ub::wire::PathPolicy::kDefault,
                                                 std::move(queue_memory), spin_ns);
    lane->Add(tenant.queue);
  }

  Rig core;
  FlatMemory memory;
  EngineShared shared;
  FakeRing* ring = nullptr;
  std::atomic<int> gone = 0;
  std::shared_ptr<Lane> lane;
  CopyLane copy;  // ends first: it may still be ringing the lane whose last result it brought
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_ENGINE_LANE_RIG_H_
