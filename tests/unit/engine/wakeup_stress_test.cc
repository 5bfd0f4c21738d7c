// Many clients and one lane that sleeps at every opportunity, with random delays at each step of the protocol (and at
// every interleaving that ThreadSanitizer's scheduler adds): if a wake-up were lost, somebody would wait for ever.
// What no stress can show, an order that this machine never takes, the model shows (tests/model/queue_wakeup.pml).
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine/lane_rig.h"

namespace ubd {
namespace {

constexpr int kClients = 3;
constexpr uint64_t kRounds = 3000;

std::function<void(int)> RandomDelays(unsigned seed) {
  return [random = std::mt19937(seed)](int) mutable {
    const uint32_t kind = random() % 8;
    if (kind == 0) sched_yield();
    if (kind != 1) return;
    volatile uint32_t sink = 0;
    for (uint32_t i = random() % 3000; i > 0; --i) sink = sink + i;
  };
}

class WakeupStress : public ::testing::TestWithParam<uint64_t> {};

TEST_P(WakeupStress, NoWakeUpIsLost) {
  LaneRig rig;
  std::vector<Tenant> tenants;
  tenants.reserve(kClients);
  for (int i = 0; i < kClients; ++i)
    tenants.push_back(rig.Open(Uid(2000 + static_cast<uint32_t>(i)), 8, 16, GetParam()));
  std::atomic<int> lost = 0;
  std::vector<std::thread> clients;
  for (unsigned c = 0; c < kClients; ++c) {
    clients.emplace_back([&lost, &client = *tenants[c].client, c] {
      client.pause = RandomDelays(c);
      std::mt19937 random(c);
      for (uint64_t sent = 0, read = 0; read < kRounds;) {
        for (uint32_t batch = 1 + random() % 4; batch > 0 && sent - read < 8; --batch) client.Submit(Nop(sent++));
        std::optional<ub::wire::CompletionEntry> done = client.Wait(20'000);
        if (!done || done->user_data != read) {
          ++lost;
          return;
        }
        ++read;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost.load(), 0);
  for (const Tenant& tenant : tenants) EXPECT_EQ(tenant.queue->ring.broken()[0], '\0');
}

// Sleeps at once; sleeps now and then; polls.
INSTANTIATE_TEST_SUITE_P(Spin, WakeupStress, ::testing::Values(0, 2'000, 100'000));

}  // namespace
}  // namespace ubd
