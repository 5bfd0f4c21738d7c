// Many threads at once: clients that take, cache, share and die, a memory layer that answers from its own threads, an
// operator who revokes and drains. For ThreadSanitizer, and for what only shows under races: double frees, lost
// answers, lost blocks.
#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/core/rig.h"

// The last owner of a shared absl::Status deletes it inside libabsl_status, whose reference count ThreadSanitizer does
// not see: Debian's Abseil is not instrumented.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libabsl_status.so"; }

namespace ubd {
namespace {

constexpr int kClients = 4;
constexpr int kGrants = 200;  // to each
constexpr uint32_t kBlocks = 12;

// An answer handed from thread to thread.
class Call {
 public:
  void Set(absl::StatusOr<Grant> result) {
    ub::MutexLock lock(&mu_);
    result_ = std::move(result);
    set_.SignalAll();
  }
  absl::StatusOr<Grant> Wait() {
    ub::MutexLock lock(&mu_);
    while (!result_) set_.Wait(&mu_);
    return *std::move(result_);
  }

 private:
  ub::Mutex mu_;
  ub::CondVar set_;
  std::optional<absl::StatusOr<Grant>> result_ ABSL_GUARDED_BY(mu_);
};

struct Stress {
  Stress() : broker(OnePool(kBlocks), {}, {clock, memory, words, events, Random}) {}

  static void Random(absl::Span<uint8_t> bytes) {
    static std::atomic<uint64_t> serial = 0;
    uint64_t mine = ++serial;
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(mine >> (8 * i));
  }

  SystemClock clock;
  FakeMemory memory;
  FakeWords words;
  Events events;
  Broker broker;
  std::atomic<uint64_t> next_session = 1;
  std::atomic<int> asked = 0;
  std::atomic<int> answered = 0;
  std::atomic<int> active = kClients;
  std::atomic<uint32_t> next_own = 0;
  std::atomic<size_t> owned = 0;
  std::atomic<int> completed = 0;
  ub::Mutex flights_mu;
  std::vector<RangePin> flights ABSL_GUARDED_BY(flights_mu);
  std::atomic<LeaseId> last_lease{LeaseId()};

  SessionId Open(Uid uid) {
    SessionFacts facts;
    facts.id = SessionId(next_session++);
    facts.uid = uid;
    broker.OpenSession(facts);
    return facts.id;
  }

  // Waits for the answer, or gives up.
  absl::StatusOr<Grant> Acquire(SessionId session, uint64_t request, uint64_t blocks, bool give_up) {
    auto call = std::make_shared<Call>();
    ++asked;
    ClaimId claim = broker.Acquire({.session = session,
                                    .bytes = kBlock * blocks,
                                    .request = RequestId(request),
                                    .wait = absl::Milliseconds(20),
                                    .cacheable = true},
                                   [this, call](absl::StatusOr<Grant> result) {
                                     ++answered;
                                     call->Set(std::move(result));
                                   });
    if (give_up) broker.Abandon(session, RequestId(request), claim);
    absl::StatusOr<Grant> result = call->Wait();
    if (give_up) return absl::CancelledError("");
    return result;
  }

  void UseAndRelease(SessionId session, const Grant& grant, std::mt19937& rng) {
    last_lease = grant.lease;
    absl::StatusOr<LeasePin> pin = broker.Pin(session, grant.lease, Access::kReadWrite);
    if (rng() % 4 == 0) {
      absl::StatusOr<Ticket> ticket = broker.Share({session, grant.lease, Access::kReadOnly, Uid(2000), {}});
      SessionId other = Open(Uid(2000));
      if (ticket.ok()) (void)broker.Attach(other, ticket->id);
      broker.CloseSession(other, SessionEnd::kHangUp);
    } else if (grant.word && rng() % 2 == 0) {
      words.ClientIdle(session, *grant.word, grant.generation);
      if (!words.ClientTakeBack(session, *grant.word, grant.generation)) return;  // recalled
    }
    Transfer(session, grant, rng);
    pin = absl::CancelledError("");              // unpin
    (void)broker.Release(session, grant.lease);  // may have been revoked meanwhile
  }

  // In flight until the device's thread lets go of it, whatever becomes of the lease meanwhile.
  void Transfer(SessionId session, const Grant& grant, std::mt19937& rng) {
    auto generation = static_cast<uint32_t>(grant.generation.value());
    absl::StatusOr<RangePin> range = broker.PinRange(
        {session, grant.lease, generation, Bytes(rng() % kBlock.count()), Bytes(1), Access::kReadWrite});
    if (!range.ok()) return;
    ub::MutexLock lock(&flights_mu);
    flights.push_back(*std::move(range));
  }

  void OwnMemory(SessionId session) {
    absl::StatusOr<Grant> own = broker.GrantOwn(session, BlockId(kBlocks + next_own++), ub::KiB(4), Access::kReadWrite);
    if (!own.ok()) return;
    ++owned;
    std::mt19937 rng(1);
    Transfer(session, *own, rng);
    (void)broker.Release(session, own->lease);
  }

  void Device() {
    for (;;) {
      bool last = active == 0;
      std::vector<RangePin> done;
      {
        ub::MutexLock lock(&flights_mu);
        done = std::exchange(flights, {});
      }
      completed += static_cast<int>(done.size());
      done.clear();
      if (last) return;
      std::this_thread::yield();
    }
  }

  void Client(int number) {
    std::mt19937 rng(number);
    Uid uid(1000 + number % 2);
    SessionId session = Open(uid);
    int grants = 0;
    for (uint64_t request = 1; grants < kGrants; ++request) {
      absl::StatusOr<Grant> grant = Acquire(session, request, 1 + rng() % 6, rng() % 8 == 0);
      if (grant.ok()) ++grants;
      if (rng() % 8 == 0) OwnMemory(session);
      if (rng() % 16 == 0) {
        broker.CloseSession(session, SessionEnd::kDied);
        session = Open(uid);
      } else if (grant.ok()) {
        UseAndRelease(session, *grant, rng);
      }
    }
    broker.CloseSession(session, SessionEnd::kHangUp);
    --active;
  }

  void Reclaimer() {
    while (active > 0) {
      while (std::optional<Order> order = memory.Take()) {
        if (order->order.must_be_fresh) broker.BlockRecycling(order->block);
        broker.BlockFree(order->block, order->order.must_be_fresh);
      }
      std::this_thread::yield();
    }
  }

  void Operator() {
    for (int i = 0; active > 0; ++i) {
      broker.Tick();
      if (i % 5 == 0) (void)broker.Revoke(kAdmin, last_lease.load(), "stress");
      if (i % 50 == 0) {
        broker.SetDrain(true);
        broker.SetDrain(false);
      }
      (void)broker.Leases(kAdmin);
      absl::Status sound = broker.CheckInvariants();
      EXPECT_EQ(sound, absl::OkStatus());
      std::this_thread::yield();
    }
  }
};

TEST(Stress, ThreadsLoseNoAnswerAndNoBlock) {
  Stress stress;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back([&stress, i] { stress.Client(i); });
  threads.emplace_back([&stress] { stress.Reclaimer(); });
  threads.emplace_back([&stress] { stress.Operator(); });
  threads.emplace_back([&stress] { stress.Device(); });
  for (std::thread& thread : threads) thread.join();
  stress.memory.Finish(stress.broker);
  EXPECT_EQ(stress.asked, stress.answered);
  EXPECT_GT(stress.completed, 0);
  EXPECT_GT(stress.owned, 0u);
  EXPECT_EQ(stress.memory.dropped().size(), stress.owned);
  EXPECT_GE(stress.events.Count(EventKind::kGranted), kClients * kGrants);
  EXPECT_GT(stress.events.Count(EventKind::kReclaimed), 0);
  EXPECT_GT(stress.events.Count(EventKind::kRevoked), 0);
  EXPECT_EQ(stress.broker.Pools()[0].free, kBlocks);
  EXPECT_EQ(stress.broker.Totals().leases, 0u);
  EXPECT_EQ(stress.broker.Totals().waiters, 0u);
  EXPECT_EQ(stress.broker.CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace ubd
