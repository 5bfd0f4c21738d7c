// Offers of descriptors from hostile and honest clients, and queue grants, over real lifelines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;

UniqueFd Memfd() { return UniqueFd(::memfd_create("offered", MFD_CLOEXEC)); }

ino_t InodeOf(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// What one TakeOffer came to.
class Taken {
 public:
  std::function<void(absl::StatusOr<UniqueFd>)> Taker() {
    return [state = state_](absl::StatusOr<UniqueFd> result) {
      ub::MutexLock lock(&state->mu);
      ++state->calls;
      if (result.ok()) {
        state->fd = *std::move(result);
      } else {
        state->reason = ub::ReasonOf(result.status());
      }
    };
  }
  bool Done() const { return Calls() > 0; }
  int Calls() const {
    ub::MutexLock lock(&state_->mu);
    return state_->calls;
  }
  ub::Reason reason() const {
    ub::MutexLock lock(&state_->mu);
    return state_->reason;
  }
  ino_t inode() const {
    ub::MutexLock lock(&state_->mu);
    return state_->fd.valid() ? InodeOf(state_->fd.get()) : 0;
  }

 private:
  struct State {
    ub::Mutex mu;
    int calls ABSL_GUARDED_BY(mu) = 0;
    ub::Reason reason ABSL_GUARDED_BY(mu) = ub::Reason::kNone;
    UniqueFd fd ABSL_GUARDED_BY(mu);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

Verdict Harmless(int, int32_t) { return {Verdict::Kind::kHarmless, ""}; }

// Received here or by a doorman: the same to a client.
class Offers : public ::testing::TestWithParam<bool> {
 protected:
  static DaemonOptions Options() {
    DaemonOptions options;
    if (GetParam()) options.doorman = [] { return *Doorman::Start(Harmless); };
    return options;
  }
  void SetUp() override {
    auto joined = Join(daemon_.lifeline());
    ASSERT_TRUE(joined.ok()) << joined.status();
    client_ = std::move(*joined);
    session_ = daemon_.Find(client_);
    ASSERT_NE(session_, nullptr);
    ASSERT_TRUE(Eventually([&] { return session_->fds_in_flight() == 0; })) << "its page is taken";
  }
  int lifeline() const { return client_.lifeline.get(); }
  Taken Take(uint64_t number, absl::Duration patience = absl::Seconds(30)) {
    Taken taken;
    session_->TakeOffer(number, patience, taken.Taker());
    return taken;
  }
  Taken TakeNow(uint64_t number) {
    Taken taken = Take(number, absl::Seconds(10));
    EXPECT_TRUE(Eventually([&] { return taken.Done(); }));
    return taken;
  }
  bool Ended() { return daemon_.events().WaitFor(EventKind::kSessionClosed, client_.id()); }
  bool Alive() { return daemon_.Find(client_) != nullptr && !HungUp(lifeline(), absl::ZeroDuration()); }

  TestDaemon daemon_{Options()};
  RawClient client_;
  std::shared_ptr<Session> session_;
};

TEST_P(Offers, ArriveWhetherAskedForBeforeOrAfter) {
  UniqueFd one = Memfd(), two = Memfd();
  Taken early = Take(1);
  ASSERT_TRUE(SendOffer(lifeline(), 1, {one.get()}).ok());
  ASSERT_TRUE(Eventually([&] { return early.Done(); }));
  EXPECT_EQ(early.inode(), InodeOf(one.get()));
  ASSERT_TRUE(SendOffer(lifeline(), 2, {two.get()}).ok());
  EXPECT_EQ(TakeNow(2).inode(), InodeOf(two.get()));
  Taken again = Take(2, absl::Milliseconds(20));
  ASSERT_TRUE(Eventually([&] { return again.Done(); }));
  EXPECT_EQ(again.reason(), ub::Reason::kNoSuchOffer) << "an offer is used once";
  EXPECT_TRUE(Alive());
}

TEST_P(Offers, WaitEndsWithItsPatienceOrItsSession) {
  Taken impatient = Take(5, absl::Milliseconds(10));
  Taken patient = Take(6, absl::Hours(1));
  ASSERT_TRUE(Eventually([&] { return impatient.Done(); }));
  EXPECT_EQ(impatient.reason(), ub::Reason::kNoSuchOffer);
  EXPECT_FALSE(patient.Done());
  client_.lifeline.reset();
  ASSERT_TRUE(Eventually([&] { return patient.Done(); }));
  EXPECT_EQ(patient.reason(), ub::Reason::kSessionEnded);
  Taken late = Take(7);
  EXPECT_EQ(late.reason(), ub::Reason::kSessionEnded) << "told at once";
  EXPECT_EQ(impatient.Calls() + patient.Calls() + late.Calls(), 3);
}

TEST_P(Offers, ARetryTakesOverAndWaitsAreBounded) {
  Taken older = Take(1), newer = Take(1);
  EXPECT_EQ(older.reason(), ub::Reason::kSuperseded);
  UniqueFd fd = Memfd();
  ASSERT_TRUE(SendOffer(lifeline(), 1, {fd.get()}).ok());
  ASSERT_TRUE(Eventually([&] { return newer.Done(); }));
  EXPECT_EQ(newer.inode(), InodeOf(fd.get()));
  std::vector<Taken> waiting;
  for (uint64_t n = 100; n < 100 + ub::wire::kMaxOffers; ++n) waiting.push_back(Take(n));
  EXPECT_EQ(Take(999).reason(), ub::Reason::kTooManyWaiters);
  for (const Taken& taken : waiting) EXPECT_FALSE(taken.Done());
}

TEST_P(Offers, AFloodKeepsTheNewestAndLeaksNothing) {
  const size_t before = OpenFdCount();
  constexpr uint64_t kFlood = 5000;
  UniqueFd fd = Memfd();
  for (uint64_t n = 1; n <= kFlood; ++n) {
    while (!SendOffer(lifeline(), n, {fd.get()}).ok()) std::this_thread::yield();
  }
  EXPECT_EQ(TakeNow(kFlood).inode(), InodeOf(fd.get()));
  EXPECT_LE(OpenFdCount(), before + 1 + ub::wire::kMaxOffers);
  EXPECT_EQ(TakeNow(kFlood - ub::wire::kMaxOffers + 1).inode(), InodeOf(fd.get()));
  Taken old = Take(kFlood - ub::wire::kMaxOffers - 1, absl::Milliseconds(10));
  ASSERT_TRUE(Eventually([&] { return old.Done(); }));
  EXPECT_EQ(old.reason(), ub::Reason::kNoSuchOffer);
  EXPECT_TRUE(Alive());
}

TEST_P(Offers, OthersAreServedDuringAFlood) {
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    UniqueFd fd = Memfd();
    for (uint64_t n = 1; !stop.load(); ++n) (void)SendOffer(lifeline(), n, {fd.get()});
  });
  for (int i = 0; i < 20; ++i) {
    auto other = Join(daemon_.lifeline());
    ASSERT_TRUE(other.ok()) << other.status();
    ASSERT_TRUE(daemon_.AcquireNow(other->id(), 1).ok());
  }
  stop.store(true);
  flood.join();
}

// Each breaks the protocol, and is the session's end.
TEST(OfferFaults, ASessionSurvivesThem) {
  UniqueFd fd = Memfd();
  using Fault = std::function<absl::Status(int)>;
  const std::vector<std::pair<const char*, Fault>> faults = {
      {"number 0", [&](int s) { return SendOffer(s, 0, {fd.get()}); }},
      {"no descriptor", [&](int s) { return SendOffer(s, 1, {}); }},
      {"two descriptors",
       [&](int s) {
         return SendOffer(s, 1, {fd.get(), fd.get()});
       }},
      {"253 descriptors", [&](int s) { return SendOffer(s, 1, std::vector<int>(253, fd.get())); }},
      {"a number twice",
       [&](int s) {
         absl::Status first = SendOffer(s, 1, {fd.get()});
         return first.ok() ? SendOffer(s, 1, {fd.get()}) : first;
       }},
      {"Hello again", [&](int s) { return SendHello(s, "again", {fd.get()}); }},
      {"garbage",
       [&](int s) {
         const std::array<std::byte, 24> bytes = {};
         return ub::wire::SendPacket(s, bytes, {});
       }},
      {"too long", [&](int s) {
         const std::array<std::byte, 4096> bytes = {};
         return ub::wire::SendPacket(s, bytes, {});
       }}};
  TestDaemon daemon;
  const size_t before = OpenFdCount();
  for (const auto& [what, fault] : faults) {
    auto client = Join(daemon.lifeline());
    ASSERT_TRUE(client.ok());
    ASSERT_TRUE(fault(client->lifeline.get()).ok()) << what;
    EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionClosed, client->id())) << what;
    EXPECT_TRUE(HungUp(client->lifeline.get())) << what;
  }
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == before; }));
}

INSTANTIATE_TEST_SUITE_P(Receivers, Offers, ::testing::Bool(),
                         [](const auto& which) { return which.param ? std::string("Doorman") : std::string("Here"); });

TEST_P(Offers, ADaemonWithoutDescriptorsLosesTheOfferOnly) {
  UniqueFd fd = Memfd();
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit none = old;
  none.rlim_cur = 3;  // below what is open: no new one can be made
  Taken taken = Take(1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  absl::Status sent = SendOffer(lifeline(), 1, {fd.get()});
  const bool done = Eventually([&] { return taken.Done(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_TRUE(sent.ok()) << sent;
  ASSERT_TRUE(done);
  EXPECT_EQ(taken.reason(), ub::Reason::kDaemonFdLimit);
  ASSERT_TRUE(SendOffer(lifeline(), 2, {fd.get()}).ok());
  EXPECT_EQ(TakeNow(2).inode(), InodeOf(fd.get()));
}

TEST_P(Offers, AreReadWhileAGrantWaitsForItsReader) {
  // The grant is larger than what may be in flight: the watch is edge-triggered from here on.
  auto grant = daemon_.AcquireNow(client_.id(), 600);
  ASSERT_TRUE(grant.ok()) << grant.status();
  UniqueFd fd = Memfd();
  for (uint64_t n = 1; n <= 60; ++n) ASSERT_TRUE(SendOffer(lifeline(), n, {fd.get()}).ok());
  EXPECT_EQ(TakeNow(60).inode(), InodeOf(fd.get()));
  size_t fds = 0;
  while (fds < 600) {
    std::vector<UniqueFd> got;
    ASSERT_TRUE(ReceiveFrame<ub::wire::Grant>(lifeline(), &got).ok());
    fds += got.size();
  }
  EXPECT_EQ(TakeNow(1).inode(), InodeOf(fd.get()));
}

TEST_P(Offers, QueueGrantArrivesAndCountsAsInFlight) {
  auto frame = ub::wire::NewFrame<ub::wire::QueueGrant>();
  frame.queue = 3;
  UniqueFd memory = Memfd(), event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const ino_t inode = InodeOf(memory.get());
  ASSERT_TRUE(session_->DeliverQueue(frame, std::move(memory), std::move(event)).ok());
  EXPECT_EQ(session_->fds_in_flight(), 2u);
  std::vector<UniqueFd> fds;
  auto got = ReceiveFrame<ub::wire::QueueGrant>(lifeline(), &fds);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->queue, 3u);
  ASSERT_EQ(fds.size(), 2u);
  EXPECT_EQ(InodeOf(fds[0].get()), inode);
  EXPECT_TRUE(Eventually([&] { return session_->fds_in_flight() == 0; }));
}

TEST_P(Offers, QueueGrantsOfAClientThatDoesNotReadAreRefused) {
  auto frame = ub::wire::NewFrame<ub::wire::QueueGrant>();
  const size_t before = OpenFdCount();
  absl::Status last;
  int sent = 0;
  for (; sent < 1000 && last.ok(); ++sent) last = session_->DeliverQueue(frame, Memfd(), Memfd());
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  EXPECT_LE(sent, 130) << "at most 253 descriptors in flight";
  EXPECT_EQ(OpenFdCount(), before) << "they lie in the socket only";
  EXPECT_TRUE(Alive());
  for (int i = 0; i < sent - 1; ++i) ASSERT_TRUE(ReceiveFrame<ub::wire::QueueGrant>(lifeline()).ok());
  EXPECT_TRUE(session_->DeliverQueue(frame, Memfd(), Memfd()).ok());
  client_.lifeline.reset();
  ASSERT_TRUE(Ended());
  EXPECT_TRUE(absl::IsUnavailable(session_->DeliverQueue(frame, Memfd(), Memfd())));
}

}  // namespace
}  // namespace ubd::testing
