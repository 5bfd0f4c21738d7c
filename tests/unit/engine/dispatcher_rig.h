// A dispatcher over a real Broker, with a double of everything that works for it. Time and rounds go as the test says.
#ifndef UBD_TESTS_UNIT_ENGINE_DISPATCHER_RIG_H_
#define UBD_TESTS_UNIT_ENGINE_DISPATCHER_RIG_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/engine/dispatcher.h"
#include "tests/unit/core/rig.h"
#include "tests/unit/engine/fakes.h"
#include "tests/unit/engine/ring_client.h"

namespace ubd {

struct Tenant {
  std::shared_ptr<EngineSession> session;
  std::shared_ptr<ServedQueue> queue;
  std::unique_ptr<RingClient> client;
  Grant lease;
  std::shared_ptr<FakeFile> file;
  uint32_t handle = 0;

  ub::wire::SubmitEntry Entry(ub::wire::Op op, uint64_t user_data, uint64_t offset, uint64_t length) const {
    ub::wire::SubmitEntry entry = {};
    entry.op = static_cast<uint8_t>(op);
    entry.user_data = user_data;
    entry.lease = lease.lease.value();
    entry.generation = static_cast<uint32_t>(lease.generation.value());
    entry.target = handle;
    entry.offset = offset;
    entry.length = length;
    return entry;
  }
  ub::wire::SubmitEntry Read(uint64_t user_data, uint64_t length, uint64_t offset = 0) const {
    return Entry(ub::wire::Op::kRead, user_data, offset, length);
  }
};

struct DispatcherRig {
  static EngineOptions SmallOptions() {
    EngineOptions options;
    options.chunk = ub::KiB(64);
    options.min_direct_storage = ub::KiB(4);
    options.max_in_flight_per_session = 16;
    return options;
  }
  explicit DispatcherRig(const EngineOptions& options = SmallOptions(), uint32_t depth = 16, uint32_t blocks = 4)
      : core(blocks),
        memory(blocks, kBlock),
        shared(options, memory),
        ring(depth),
        dispatcher(shared, {&ring, &slow, &copy, nullptr}) {
    shared.broker = core.broker.get();
    EXPECT_EQ(memory.RegisterWith(&ring), absl::OkStatus());
  }
  // A dispatcher never lets go of what is in flight: everything ends first.
  ~DispatcherRig() {
    for (const auto& queue : queues) {
      dispatcher.End(*queue, ub::wire::QueueState::kClosed, ub::wire::TransferError::kCancelled);
    }
    for (size_t handed = 0; dispatcher.in_flight() != 0;) {
      while (!ring.posted().empty()) ring.End();
      for (const PieceOrder& order : std::exchange(slow.orders, {})) {
        const PieceResult result = {order.piece.tag, static_cast<int32_t>(order.piece.length), false};
        dispatcher.TakeResults({&result, 1}, now_ns);
      }
      dispatcher.Round(now_ns);
      if (++handed > 100'000) {
        ADD_FAILURE() << dispatcher.in_flight() << " transfers do not end";
        break;
      }
    }
  }

  Tenant Open(Uid uid, uint64_t blocks = 1, uint32_t sq = 64, uint32_t cq = 128) {
    Tenant tenant;
    const SessionId id = core.Open(uid);
    tenant.session = std::make_shared<EngineSession>(id, uid, 1);
    tenant.lease = core.Take(id, {.blocks = blocks});
    tenant.file = std::make_shared<FakeFile>();
    tenant.handle = *tenant.session->AddFile(tenant.file, 1000);
    AddQueue(tenant, sq, cq);
    return tenant;
  }
  void AddQueue(Tenant& tenant, uint32_t sq = 64, uint32_t cq = 128) {
    auto queue_memory = *QueueMemory::Create({sq, cq});
    tenant.client = std::make_unique<RingClient>(queue_memory->data(), queue_memory->layout());
    tenant.queue = std::make_shared<ServedQueue>(tenant.session, 1, ub::wire::PathPolicy::kDefault,
                                                 std::move(queue_memory), 20'000);
    queues.push_back(tenant.queue);
  }

  // Rounds until nothing happens, as a lane would make them.
  void Run(std::initializer_list<const Tenant*> tenants) {
    for (bool busy = true; busy;) {
      for (const Tenant* tenant : tenants) {
        if (tenant->queue->ring.Waiting() != 0 && tenant->queue->place == ServedQueue::Place::kPolled) {
          dispatcher.Ready(*tenant->queue);
        }
      }
      busy = dispatcher.Round(now_ns += 1000);
      for (ServedQueue* queue : dispatcher.touched()) {
        queue->touched = false;
        queue->ring.Publish();
        if (queue->place == ServedQueue::Place::kNoPlace) dispatcher.Ready(*queue);
      }
      dispatcher.touched().clear();
      busy &= ++rounds % 1000 != 0;
    }
  }
  void Submit(const Tenant& tenant, const ub::wire::SubmitEntry& entry) {
    tenant.client->Submit(entry);
    Run({&tenant});
  }
  // The only completion there is.
  ub::wire::CompletionEntry Only(const Tenant& tenant) {
    Run({&tenant});
    std::optional<ub::wire::CompletionEntry> one = tenant.client->Poll();
    EXPECT_TRUE(one.has_value()) << "no completion";
    EXPECT_FALSE(tenant.client->Poll().has_value()) << "more than one completion";
    return one.value_or(ub::wire::CompletionEntry{});
  }
  uint64_t InFlight(const Tenant& tenant) {
    std::optional<LeaseListing> lease = core.LeaseOf(tenant.lease.lease);
    return lease ? lease->in_flight : 0;
  }

  Rig core;
  FlatMemory memory;
  EngineShared shared;
  FakeRing ring;
  FakeWorker slow, copy;
  std::vector<std::shared_ptr<ServedQueue>> queues;
  Dispatcher dispatcher;
  uint64_t now_ns = 1'000'000;
  uint64_t rounds = 0;
};

inline ub::wire::TransferError ErrorIn(const ub::wire::CompletionEntry& completion) {
  return static_cast<ub::wire::TransferError>(completion.error);
}
inline ub::wire::Path PathIn(const ub::wire::CompletionEntry& completion) {
  return static_cast<ub::wire::Path>(completion.path);
}
inline ub::wire::PathReason ReasonIn(const ub::wire::CompletionEntry& completion) {
  return static_cast<ub::wire::PathReason>(completion.path_reason);
}

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_ENGINE_DISPATCHER_RIG_H_
