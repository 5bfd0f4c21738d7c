// Every backing is registered with every device before anybody uses it, and taken from it before it is freed; for small
// and huge pages.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "tests/unit/memory/fake_registrar.h"
#include "tests/unit/memory/reclaim_fixture.h"

namespace ubd::testing {
namespace {

using ::testing::IsEmpty;

class Registered : public Reclaim {
 protected:
  // The devices are there before the threads start, as at boot.
  void BootAndRegister(uint32_t blocks, uint32_t reserve, const std::vector<Registrar*>& devices) {
    fds_ = OpenFds();
    HostPoolConfig pool = SmallPool("p", GetParam(), blocks, reserve);
    pool.lock_pages = Demand::kOff;
    absl::StatusOr<std::unique_ptr<Memory>> made = CreateHostMemory({pool}, nullptr, RealDeps());
    ASSERT_TRUE(made.ok()) << made.status();
    memory_ = std::move(*made);
    for (Registrar* device : devices) ASSERT_TRUE(memory_->RegisterWith(device).ok());
    memory_->Start(&sink_);
  }
  void TearDown() override {
    Reclaim::TearDown();
    for (const FakeRegistrar* device : {&device_, &second_}) {
      EXPECT_THAT(device->Faults(), IsEmpty());
      EXPECT_EQ(device->Size(), 0U) << "something was left with a device that is gone";
    }
  }
  MappedBlock At(uint32_t block) { return memory_->Locate(BlockId(block)); }
  // As a copy by the CPU would.
  bool WriteThrough(uint32_t block, char value) {
    struct iovec from = {&value, 1};
    struct iovec to = {At(block).address, 1};
    return ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0) == 1;
  }
  void PunchFirstPage(uint32_t block) {
    ub::UniqueFd client = Open(block);
    ASSERT_EQ(::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                          static_cast<off_t>(GetParam().count())),
              0);
  }

  FakeRegistrar device_;
  FakeRegistrar second_;
};

TEST_P(Registered, BootGivesEveryBackingASlotAndRegistersIt) {
  BootAndRegister(3, 2, {&device_, &second_});
  EXPECT_EQ(memory_->Slots(), 5 + Memory::kMostOwn);
  EXPECT_EQ(device_.Size(), 5U);
  EXPECT_EQ(second_.Size(), 5U);
  std::set<uint32_t> slots;
  for (uint32_t block = 0; block < 3; ++block) {
    MappedBlock at = At(block);
    EXPECT_EQ(at.bytes, kBlock);
    EXPECT_LT(at.slot, memory_->Slots());
    EXPECT_TRUE(slots.insert(at.slot).second) << "slot " << at.slot << " names two backings";
    EXPECT_TRUE(device_.Has(at));
    EXPECT_TRUE(second_.Has(at));
  }
  EXPECT_EQ(At(3).address, nullptr) << "no such block";
}

TEST_P(Registered, LocatedMemoryIsThatOfTheBlockAndMayBeWritten) {
  BootAndRegister(2, 0, {&device_});
  ASSERT_TRUE(WriteThrough(1, 'x'));
  EXPECT_EQ(FirstByte(1), 'x');
  EXPECT_EQ(FirstByte(0), 0);
}

TEST_P(Registered, WritableMappingLeavesTheReuseTestsAsTheyWere) {
  BootAndRegister(1, 1, {&device_});
  EXPECT_EQ(memory_->ReuseTest(), "sole-holder");
  ASSERT_TRUE(WriteThrough(0, 'x'));
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(FirstByte(0), 'x');
  EXPECT_EQ(device_.registered(), 2) << "it is registered still";
}

TEST_P(Registered, RefusalAtBootIsTheAnswerAndNothingStaysRegistered) {
  fds_ = OpenFds();
  absl::StatusOr<std::unique_ptr<Memory>> made =
      CreateHostMemory({SmallPool("p", GetParam(), 4, 1)}, nullptr, RealDeps());
  ASSERT_TRUE(made.ok()) << made.status();
  memory_ = std::move(*made);
  ASSERT_TRUE(memory_->RegisterWith(&device_).ok());
  second_.Fail(1, 2);
  absl::Status refused = memory_->RegisterWith(&second_);
  EXPECT_EQ(refused.message(), "the device refuses");
  EXPECT_EQ(second_.Size(), 0U);
  EXPECT_EQ(device_.Size(), 5U) << "the other device keeps what it has";
}

TEST_P(Registered, FreshBackingIsRegisteredBeforeTheBlockIsFree) {
  BootAndRegister(2, 1, {&device_});
  for (size_t round = 1; round <= 10; ++round) {
    Order(0, /*must_be_fresh=*/true);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, round));
    EXPECT_TRUE(device_.Has(At(0)));
    EXPECT_LT(At(0).slot, memory_->Slots());
    EXPECT_NE(At(0).slot, At(1).slot);
  }
  EXPECT_TRUE(Eventually([&] { return Reserve() == 1 && device_.Size() == 3; }));
}

TEST_P(Registered, RetiredBackingLeavesTheDevicesAtOnce) {
  BootAndRegister(2, 1, {&device_});
  ub::UniqueFd held = Open(0);
  const MappedBlock old = At(0);
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_FALSE(device_.Has(old));
  EXPECT_NE(At(0).slot, old.slot) << "the retired one still exists";
  EXPECT_EQ(device_.Size(), 2U);
  held.reset();
  ASSERT_TRUE(sink_.WaitFor(Event::kFreed));
  EXPECT_TRUE(Eventually([&] { return device_.Size() == 3; }));
}

TEST_P(Registered, RefusalAtRuntimeIsTriedAgain) {
  BootAndRegister(1, 0, {&device_, &second_});
  second_.Fail(3);
  Order(0, /*must_be_fresh=*/true);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(second_.refused(), 3);
  EXPECT_TRUE(device_.Has(At(0)));
  EXPECT_TRUE(second_.Has(At(0)));
  EXPECT_EQ(device_.Size(), 1U) << "what the second device refused, the first one must not keep";
  EXPECT_EQ(MemfdMaps(), 1U);
}

TEST_P(Registered, StopTakesEverythingFromTheDevices) {
  BootAndRegister(2, 1, {&device_, &second_});
  memory_->Stop();
  EXPECT_EQ(device_.Size(), 0U);
  EXPECT_EQ(second_.Size(), 0U);
  memory_->Stop();
}

// Punched and faulted in again: every page is there, but not the one that the device has.
TEST_P(Registered, TouchedBlockIsRegisteredAnewBeforeItsNextLease) {
  BootAndRegister(1, 1, {&device_, &second_});
  PunchFirstPage(0);
  memory_->Touched(BlockId(0));
  ASSERT_TRUE(WriteThrough(0, 'x'));
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(device_.registered(), 3) << "two at boot and one anew";
  EXPECT_EQ(second_.registered(), 3);
  EXPECT_TRUE(device_.Has(At(0)));
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree, 2));
  EXPECT_EQ(device_.registered(), 3) << "once is enough";
}

TEST_P(Registered, TouchedBlockThatCannotBeRegisteredAnewGetsFreshBacking) {
  BootAndRegister(1, 1, {&device_, &second_});
  const MappedBlock old = At(0);
  memory_->Touched(BlockId(0));
  second_.Fail(1);
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_NE(At(0).address, old.address);
  EXPECT_TRUE(device_.Has(At(0)));
  EXPECT_EQ(sink_.Count(Event::kFree), 0U);
  EXPECT_TRUE(Eventually([&] { return device_.Size() == 2 && second_.Size() == 2; }));
}

TEST_P(Registered, BlockThatWaitsForBackingIsNowhere) {
  BootAndRegister(1, 0, {&device_});
  ub::UniqueFd held = Open(0);
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kRecycling));
  EXPECT_EQ(At(0).address, nullptr);
  held.reset();
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_TRUE(device_.Has(At(0)));
}

INSTANTIATE_TEST_SUITE_P(Pages, Registered, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
