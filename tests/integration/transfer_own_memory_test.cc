// Memory of the client's own, and records in batches.
#include <sys/mman.h>

#include "tests/integration/transfer_fixture.h"
#include "ub/batcher.h"

namespace ubd::testing {
namespace {

class OwnMemoryTest : public TransferTest {
 protected:
  static ub::UniqueFd MakeMemory(uint64_t bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW, bool filled = true) {
    ub::UniqueFd fd(::memfd_create("own", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_TRUE(!filled || ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) == 0);
    EXPECT_TRUE(seals == 0 || ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
  }
};

TEST_F(OwnMemoryTest, RegisteredMemoryIsSomethingElse) {
  std::string text = Pattern(4 << 20, 21);
  ub::File file = Open(disk_.Write("file", text), O_RDWR);
  ub::UniqueFd memory = MakeMemory(8 << 20);
  void* seen = ::mmap(nullptr, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  ASSERT_NE(seen, MAP_FAILED);
  auto lease = client_->Register(memory.get(), {.offset = MiB(3), .size = MiB(4)});
  ASSERT_TRUE(lease.ok()) << lease.status();
  memory.reset();
  EXPECT_EQ(lease->size(), MiB(4).count());
  EXPECT_EQ(lease->access(), ub::Access::kReadWrite);
  ASSERT_TRUE(lease->ub_addr(Bytes(0)).ok());
  EXPECT_GE(lease->ub_addr(Bytes(0))->value(), ub::UbAddr::kBase);
  Completion done = Do(ub::ReadOp(1, file, Bytes(0), *lease, Bytes(0), MiB(4), {.path = PathPolicy::kDirectOnly}));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.path, Path::kDirect);
  EXPECT_TRUE(Text(*lease, 0, text.size()) == text);
  // The caller's own mapping is the same memory.
  EXPECT_EQ(std::memcmp(static_cast<char*>(seen) + (3 << 20), text.data(), text.size()), 0);
  EXPECT_EQ(static_cast<char*>(seen)[(3 << 20) - 1], 0);
  ub::Lease pooled = Get();
  EXPECT_TRUE(Do(ub::CopyOp(1, *lease, MiB(1), pooled, Bytes(0), MiB(1))).status.ok());
  EXPECT_TRUE(Text(pooled, 0, 1 << 20) == text.substr(1 << 20, 1 << 20));
  ::munmap(seen, 8 << 20);
  ub::LeaseId id = lease->id();
  EXPECT_TRUE(lease->Release().ok());
  EXPECT_EQ(watch_->Leases().leases_size(), 1) << id;
}

TEST_F(OwnMemoryTest, MemoryThatCannotServe) {
  ub::UniqueFd good = MakeMemory(2 << 20);
  auto refused = [&](int fd, const ub::RegisterOptions& options) {
    return ReasonOf(client_->Register(fd, options).status());
  };
  ub::UniqueFd loose = MakeMemory(2 << 20, 0);
  EXPECT_EQ(refused(loose.get(), {.size = MiB(2)}), Reason::kBadMemory);
  ub::UniqueFd sparse = MakeMemory(2 << 20, F_SEAL_SHRINK | F_SEAL_GROW, false);
  EXPECT_EQ(refused(sparse.get(), {.size = MiB(2)}), Reason::kBadMemory);
  EXPECT_EQ(refused(good.get(), {.size = MiB(4)}), Reason::kBadMemory);
  EXPECT_EQ(refused(good.get(), {.offset = Bytes(17), .size = MiB(1)}), Reason::kBadField);
  EXPECT_EQ(refused(good.get(), {.size = Bytes(4097)}), Reason::kBadField);
  EXPECT_EQ(refused(good.get(), {.size = Bytes(0)}), Reason::kBadField);
  EXPECT_EQ(refused(good.get(), {.offset = Bytes(UINT64_MAX - 4095), .size = MiB(1)}), Reason::kBadField);
  ub::UniqueFd file(::open(disk_.Write("file", Pattern(4096, 1)).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(refused(file.get(), {.size = KiB(4)}), Reason::kBadMemory);
  ub::UniqueFd sealed = MakeMemory(2 << 20, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  EXPECT_EQ(refused(sealed.get(), {.size = MiB(2)}), Reason::kBadMemory);
  EXPECT_NE(refused(-1, {.size = MiB(2)}), Reason::kNone);
  EXPECT_EQ(watch_->Leases().leases_size(), 0);
}

TEST_F(OwnMemoryTest, ReadOnlyMemoryWritten) {
  std::string text = Pattern(1 << 20, 22);
  ub::UniqueFd memory = MakeMemory(1 << 20, 0);
  ASSERT_EQ(::pwrite(memory.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  auto lease = client_->Register(memory.get(), {.size = MiB(1), .access = ub::Access::kReadOnly});
  ASSERT_TRUE(lease.ok()) << lease.status();
  std::string path = disk_.Write("file", "");
  ub::File file = Open(path);
  EXPECT_TRUE(Do(ub::WriteOp(1, *lease, Bytes(0), MiB(1), file, Bytes(0))).status.ok());
  EXPECT_TRUE(ReadFile(path) == text);
  EXPECT_EQ(ReasonOf(Do(ub::ReadOp(1, file, Bytes(0), *lease, Bytes(0), MiB(1))).status), Reason::kReadOnly);
}

TEST_F(OwnMemoryTest, OwnMemoryOutlivesItsSession) {
  ub::UniqueFd memory = MakeMemory(1 << 20);
  auto other = Connect();
  {
    auto lease = other->Register(memory.get(), {.size = MiB(1)});
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(watch_->Leases().leases_size(), 1);
  }
  EXPECT_TRUE(watch_->WaitUntil([&] { return watch_->Leases().leases_size() == 0; }, kBound).ok());
  auto lease = other->Register(memory.get(), {.size = MiB(1)});
  ASSERT_TRUE(lease.ok()) << lease.status();
}

TEST_F(OwnMemoryTest, BatchedRecordsDifferInTheFile) {
  std::string path = disk_.Write("log", "");
  ub::File file = Open(path);
  auto slots = ub::SlotPool::Create(*client_, {.slot = KiB(256), .bytes = MiB(4)});
  ASSERT_TRUE(slots.ok()) << slots.status();
  std::mt19937 random(23);
  std::string expected;
  uint64_t direct = 0;
  uint64_t told = 0;
  constexpr uint64_t kRecords = 20000;
  {
    ub::Batcher batcher(*queue_, **slots, file, {.delay = absl::Seconds(10)});
    for (uint64_t i = 0; i < kRecords; ++i) {
      std::string record = Pattern(1 + random() % 500, static_cast<uint32_t>(i));
      expected += record;
      auto done = [&, size = record.size()](const Completion& completion) {
        EXPECT_TRUE(completion.status.ok()) << completion.status;
        EXPECT_EQ(completion.bytes, Bytes(size));
        direct += completion.path == Path::kDirect ? 1 : 0;
        ++told;
      };
      while (true) {
        absl::Status added = batcher.Add({reinterpret_cast<const std::byte*>(record.data()), record.size()}, done);
        if (added.ok()) break;
        ASSERT_EQ(ReasonOf(added), Reason::kPoolEmpty) << added;
        batcher.Poll();
      }
    }
    ASSERT_TRUE(batcher.Flush().ok());
  }
  EXPECT_EQ(told, kRecords);
  // All but the last batch end at multiples of its size.
  EXPECT_GT(direct, kRecords * 9 / 10);
  EXPECT_TRUE(ReadFile(path) == expected);
}

}  // namespace
}  // namespace ubd::testing
