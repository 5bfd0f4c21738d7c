// A client's own memory: registered, found, dropped; for small and huge pages.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <thread>

#include "daemon/memory/witness.h"
#include "tests/unit/memory/own_fixture.h"

namespace ubd::testing {
namespace {

bool WriteByte(void* address, char value) {
  struct iovec from = {&value, 1};
  struct iovec to = {address, 1};
  return ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0) == 1;
}

TEST_P(Own, RangeIsMappedPopulatedAndRegistered) {
  ub::UniqueFd client = Good();
  absl::StatusOr<BlockId> block = Add(client, page(), page() * 2);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(*block, BlockId(2)) << "after the pools' blocks";
  MappedBlock at = memory_->Locate(*block);
  EXPECT_EQ(at.bytes, page() * 2);
  EXPECT_TRUE(device_.Has(at));
  EXPECT_LT(at.slot, memory_->Slots());
  absl::StatusOr<Pagemap> pagemap = Pagemap::Open();
  ASSERT_TRUE(pagemap.ok());
  EXPECT_TRUE(pagemap->Scan(at.address, at.bytes.count(), page().count())->complete()) << "a fault would come later";
  // The second page of the client's, not a copy of it.
  ASSERT_TRUE(WriteByte(at.address, 'd'));
  Mapping mapping(client.get(), page() * 4, PROT_READ);
  EXPECT_EQ(mapping.data()[0], 'c');
  EXPECT_EQ(mapping.data()[page().count()], 'd');
  EXPECT_EQ(mapping.data()[page().count() * 2], 'c');
}

TEST_P(Own, DroppedRangeIsUnregisteredAndUnmappedAndItsNumberIsNeverUsedAgain) {
  ub::UniqueFd client = Good();
  BlockId first = *AddAll(client);
  const MappedBlock at = memory_->Locate(first);
  memory_->DropOwn(first);
  EXPECT_EQ(memory_->Locate(first).address, nullptr);
  EXPECT_TRUE(Eventually([&] { return device_.Size() == 3 && !IsMapped(at.address, at.bytes); }));
  memory_->DropOwn(first);
  EXPECT_EQ(*AddAll(client), BlockId(first.value() + 1));
}

TEST_P(Own, NoDescriptorIsKept) {
  ub::UniqueFd client = Good();
  const size_t before = OpenFds();
  ASSERT_TRUE(AddAll(client).ok());
  EXPECT_EQ(OpenFds(), before);
}

TEST_P(Own, StopAndEndLetGoOfWhatIsLeft) {
  ub::UniqueFd client = Good();
  BlockId dropped = *AddAll(client);
  const MappedBlock at = memory_->Locate(*AddAll(client));
  memory_->Stop();
  EXPECT_EQ(device_.Size(), 0U);
  memory_->DropOwn(dropped);
  memory_.reset();
  EXPECT_FALSE(IsMapped(at.address, at.bytes));
}

TEST_P(Own, DeviceThatRefusesIsTheAnswer) {
  ub::UniqueFd client = Good();
  device_.Fail(1);
  EXPECT_EQ(AddAll(client).status().message(), "the device refuses");
  EXPECT_TRUE(AddAll(client).ok());
}

// The inode's owner may close it to everybody; its descriptor is enough.
TEST_P(Own, ModeThatForbidsAReopenIsNoObstacle) {
  ub::UniqueFd client = Good();
  ASSERT_EQ(::fchmod(client.get(), 0), 0);
  const off_t position = ::lseek(client.get(), 123, SEEK_SET);
  absl::StatusOr<BlockId> block = AddAll(client);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_TRUE(WriteByte(memory_->Locate(*block).address, 'd'));
  EXPECT_EQ(::lseek(client.get(), 0, SEEK_CUR), position) << "the client's own position was moved";
}

// Root could open it for writing all the same, and must not.
TEST_P(Own, ReadOnlyDescriptorIsNotTurnedIntoAWritableMapping) {
  ub::UniqueFd client = Good();
  ub::UniqueFd read_only = *ReopenMemfd(client.get(), Access::kReadOnly);
  absl::StatusOr<BlockId> block = AddAll(read_only, Access::kReadOnly);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_FALSE(WriteByte(memory_->Locate(*block).address, 'd'));
  EXPECT_EQ(ub::DetailOf(AddAll(read_only, Access::kReadWrite).status(), "field"), "access");
}

TEST_P(Own, SealedAgainstWritingCanBeReadOnly) {
  ub::UniqueFd client = Good();
  Seal(client, F_SEAL_FUTURE_WRITE);
  EXPECT_TRUE(AddAll(client, Access::kReadOnly).ok());
}

TEST_P(Own, PagesOfFallocateCountAsAllocated) {
  ub::UniqueFd client = ClientMemfd(page() * 4, page());
  ASSERT_EQ(::fallocate(client.get(), 0, 0, static_cast<off_t>(page().count() * 4)), 0);
  Seal(client);
  EXPECT_TRUE(AddAll(client).ok());
}

TEST_P(Own, SmallPagesOutsideTheRangeNeedNotBeThere) {
  if (page() > SmallPageSize()) return;  // of huge pages the kernel tells only how many there are
  ub::UniqueFd client = ClientMemfd(page() * 4, page());
  FillPages(client.get(), page() * 2, page(), 'c');
  Seal(client);
  EXPECT_TRUE(Add(client, Bytes(), page() * 2).ok());
}

TEST_P(Own, ThereAreAtMostSoMany) {
  if (page() > SmallPageSize()) return;
  ub::UniqueFd client = Good();
  BlockId last;
  for (uint32_t i = 0; i < Memory::kMostOwn; ++i) {
    absl::StatusOr<BlockId> block = Add(client, Bytes(), page());
    ASSERT_TRUE(block.ok()) << i << ": " << block.status();
    last = *block;
  }
  absl::Status full = Add(client, Bytes(), page()).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ub::DetailOf(full, "limit"), "1024");
  memory_->DropOwn(last);
  EXPECT_TRUE(Eventually([&] { return Add(client, Bytes(), page()).ok(); }));
}

TEST_P(Own, ManyThreadsAddFindAndDrop) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ub::UniqueFd client = Good();
      for (int round = 0; round < 50; ++round) {
        absl::StatusOr<BlockId> block = AddAll(client);
        ASSERT_TRUE(block.ok()) << block.status();
        EXPECT_TRUE(device_.Has(memory_->Locate(*block)));
        memory_->DropOwn(*block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return device_.Size() == 3; }));
}

INSTANTIATE_TEST_SUITE_P(Pages, Own, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
