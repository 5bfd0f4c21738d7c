// Doubles for the Broker's tests: a clock that moves when told, memory of a few tiny blocks whose reuse tests end when
// and how the test says, lease words with clients behind them, and a record of all events. Thread-safe where the stress
// test needs it.
#ifndef UBD_TESTS_UNIT_CORE_FAKES_H_
#define UBD_TESTS_UNIT_CORE_FAKES_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/core/broker.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FakeClock : public Clock {
 public:
  MonoTime Now() const override { return MonoTime(absl::Nanoseconds(now_ns_.load())); }
  void Advance(absl::Duration by) { now_ns_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<int64_t> now_ns_ = 1'000'000'000;
};

struct Order {
  BlockId block;
  ReclaimOrder order;
};

// Orders wait until the test lets them end.
class FakeMemory : public BlockMemory {
 public:
  void Reclaim(BlockId block, ReclaimOrder order) override;

  void DropOwn(BlockId block) override;

  std::vector<Order> pending() const;
  // The next order, taken out; none: nothing is pending. The caller reports to the sink.
  std::optional<Order> Take();
  // Ends everything that is pending, also what comes up meanwhile: fresh backing where ordered or where `held` names
  // the block (the old backing is then retired), else the old one. Returns how many blocks got free.
  int Finish(ReclaimSink& sink);
  // What the memory layer does with one order. `held`: somebody still maps the block.
  void FinishOne(ReclaimSink& sink, const Order& order, bool held);
  // Frees all retired backings.
  void LetGo(ReclaimSink& sink);

  std::set<BlockId> held;
  std::vector<std::pair<BlockId, Charge>> retired;
  // In the order of DropOwn.
  std::vector<BlockId> dropped() const;

 private:
  mutable ub::Mutex mu_;
  std::deque<Order> pending_ ABSL_GUARDED_BY(mu_);
  std::vector<BlockId> dropped_ ABSL_GUARDED_BY(mu_);
};

class FakeWords : public LeaseWords {
 public:
  std::optional<uint32_t> Assign(SessionId session, Generation generation) override;
  void Drop(SessionId session, uint32_t word, Generation generation) override;
  bool TryRecall(SessionId session, uint32_t word, Generation generation) override;
  bool IsIdle(SessionId session, uint32_t word, Generation generation) override;
  void SetPressure(bool pressure) override;

  // The client's side. False: it must not stay idle (pressure): it is busy again, and is to be released.
  bool ClientIdle(SessionId session, uint32_t word, Generation generation);
  bool ClientTakeBack(SessionId session, uint32_t word, Generation generation);
  uint64_t StateOf(SessionId session, uint32_t word) { return WordOf(session, word).word.load(); }

  uint32_t words_per_session = 8;
  std::atomic<bool> pressure = false;
  std::atomic<int> pressure_changes = 0;
  int tries_without_pressure = 0;
  int tries = 0;  // calls of TryRecall

 private:
  ub::wire::LeaseWord& WordOf(SessionId session, uint32_t word);

  ub::Mutex mu_;
  std::map<std::pair<SessionId, uint32_t>, ub::wire::LeaseWord> words_ ABSL_GUARDED_BY(mu_);
};

class Events : public Observer {
 public:
  void OnEvent(const Event& event) override { all.push_back(event); }  // under the Broker's lock
  // How many of `kind` belong to `session`'s stream.
  int Count(EventKind kind, SessionId session) const;
  int Count(EventKind kind) const;
  std::vector<Event> all;
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_CORE_FAKES_H_
