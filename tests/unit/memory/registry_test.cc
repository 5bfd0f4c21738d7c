// The book of slots by itself, step by step.
#include "daemon/memory/registry.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "daemon/memory/closer.h"
#include "daemon/memory/parallel.h"
#include "tests/unit/memory/fake_registrar.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

using ::testing::IsEmpty;

// Four pages that devices can be given.
struct Pages {
  Pages() : mapping(fd.get(), ub::KiB(16), PROT_READ | PROT_WRITE) {}
  void* At(size_t i) const { return mapping.data() + i * 4096; }
  ub::UniqueFd fd = [] {
    ub::UniqueFd made(::memfd_create("pages", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(made.get(), 16384), 0);
    return made;
  }();
  Mapping mapping;
};

TEST(Registry, SlotIsGivenAgainOnlyWhenItsMemoryIsGone) {
  Pages pages;
  FakeRegistrar device;
  Registry registry(2);
  ASSERT_TRUE(registry.AddDevice(&device).ok());
  absl::StatusOr<Registration> first = registry.Add(pages.At(0), ub::KiB(4));
  absl::StatusOr<Registration> second = registry.Add(pages.At(1), ub::KiB(4));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->slot(), 0U);
  EXPECT_EQ(second->slot(), 1U);
  EXPECT_EQ(registry.Add(pages.At(2), ub::KiB(4)).status().code(), absl::StatusCode::kResourceExhausted);
  first->Withdraw();
  EXPECT_EQ(device.Size(), 1U);
  EXPECT_FALSE(registry.Add(pages.At(2), ub::KiB(4)).ok()) << "withdrawn is not gone";
  *first = Registration();
  absl::StatusOr<Registration> third = registry.Add(pages.At(2), ub::KiB(4));
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->slot(), 0U);
  *third = *std::move(second);
  EXPECT_EQ(third->slot(), 1U);
  EXPECT_EQ(device.Size(), 1U) << "what was assigned over is gone";
  *third = Registration();
  EXPECT_EQ(device.Size(), 0U);
  EXPECT_THAT(device.Faults(), IsEmpty());
}

TEST(Registry, RefusedMemoryTakesNoSlot) {
  Pages pages;
  FakeRegistrar first;
  FakeRegistrar second;
  Registry registry(1);
  ASSERT_TRUE(registry.AddDevice(&first).ok());
  ASSERT_TRUE(registry.AddDevice(&second).ok());
  second.Fail(1);
  EXPECT_FALSE(registry.Add(pages.At(0), ub::KiB(4)).ok());
  EXPECT_EQ(first.Size(), 0U);
  EXPECT_TRUE(registry.Add(pages.At(0), ub::KiB(4)).ok());
  EXPECT_THAT(first.Faults(), IsEmpty());
  EXPECT_THAT(second.Faults(), IsEmpty());
}

TEST(Registry, WithdrawnMemoryIsNotGivenToALaterDevice) {
  Pages pages;
  FakeRegistrar device;
  Registry registry(2);
  absl::StatusOr<Registration> kept = registry.Add(pages.At(0), ub::KiB(4));
  absl::StatusOr<Registration> retired = registry.Add(pages.At(1), ub::KiB(4));
  retired->Withdraw();
  ASSERT_TRUE(registry.AddDevice(&device).ok());
  EXPECT_EQ(device.Size(), 1U);
  registry.RemoveDevices();
  EXPECT_EQ(device.Size(), 0U);
  EXPECT_TRUE(kept->Renew().ok()) << "with no device there is nothing to fail";
  EXPECT_TRUE(Registration().Renew().ok());
  EXPECT_THAT(device.Faults(), IsEmpty());
}

TEST(Parallel, EveryPieceIsDoneOnceOrTheFirstFailureEndsIt) {
  std::vector<std::atomic<int>> done(1000);
  auto count = [&done](size_t i) {
    ++done[i];
    return absl::OkStatus();
  };
  EXPECT_TRUE(ForEachInParallel(done.size(), count).ok());
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  EXPECT_TRUE(ForEachInParallel(0, count).ok());
  std::atomic<size_t> tried = 0;
  absl::Status failed = ForEachInParallel(100000, [&](size_t) {
    ++tried;
    return absl::AbortedError("no");
  });
  EXPECT_EQ(failed.message(), "no");
  EXPECT_LE(tried, std::max(std::thread::hardware_concurrency(), 1U)) << "a thread went on after its failure";
}

TEST(Closer, ClosesWhatItIsGivenAndMayGoFirst) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ub::UniqueFd read_end(ends[0]);
  {
    Closer closer;
    for (int i = 0; i < 100; ++i) closer.Close(ub::UniqueFd(::fcntl(ends[1], F_DUPFD_CLOEXEC, 0)));
    EXPECT_TRUE(Eventually([&] { return closer.pending() == 0; }));
    closer.Close(ub::UniqueFd(ends[1]));
  }
  char byte = 0;
  EXPECT_TRUE(Eventually([&] { return ::read(read_end.get(), &byte, 1) == 0; })) << "some writer is left";
}

}  // namespace
}  // namespace ubd::testing
