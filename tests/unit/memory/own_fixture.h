// Memories of clients, good and bad, and a daemon's memory to register them with.
#ifndef UBD_TESTS_UNIT_MEMORY_OWN_FIXTURE_H_
#define UBD_TESTS_UNIT_MEMORY_OWN_FIXTURE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <memory>
#include <string>

#include "daemon/memory/page_size.h"
#include "proto/wire/error.h"
#include "tests/unit/memory/fake_registrar.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {

inline constexpr int kGoodSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// As a client makes it: empty, and not sealed yet.
inline ub::UniqueFd ClientMemfd(Bytes bytes, Bytes page_size) {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  if (page_size > SmallPageSize()) {
    flags |= MFD_HUGETLB | static_cast<unsigned>(std::countr_zero(page_size.count())) << 26U;
  }
  ub::UniqueFd fd(::memfd_create("client", flags));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes.count())), 0);
  return fd;
}

// Writes the first byte of every page.
inline void FillPages(int fd, Bytes bytes, Bytes page_size, char value) {
  Mapping mapping(fd, bytes, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(mapping.ok());
  for (uint64_t at = 0; at < bytes.count(); at += page_size.count()) mapping.data()[at] = value;
}

inline void Seal(const ub::UniqueFd& fd, int seals = kGoodSeals) {
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
}

class Own : public ::testing::TestWithParam<Bytes> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PAGES(page());
    absl::StatusOr<std::unique_ptr<Memory>> made =
        CreateHostMemory({SmallPool("p", ub::KiB(4), 2, 1)}, nullptr, RealDeps());
    ASSERT_TRUE(made.ok()) << made.status();
    memory_ = std::move(*made);
    ASSERT_TRUE(memory_->RegisterWith(&device_).ok());
    memory_->Start(&sink_);
  }
  void TearDown() override {
    if (memory_ == nullptr) return;
    memory_->Stop();
    memory_.reset();
    EXPECT_EQ(device_.Faults(), std::vector<std::string>());
    EXPECT_EQ(device_.Size(), 0U);
  }
  static Bytes page() { return GetParam(); }
  // Four pages, written and sealed.
  ub::UniqueFd Good() {
    ub::UniqueFd fd = ClientMemfd(page() * 4, page());
    FillPages(fd.get(), page() * 4, page(), 'c');
    Seal(fd);
    return fd;
  }
  static ub::UniqueFd Dup(const ub::UniqueFd& fd) { return ub::UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }
  absl::StatusOr<BlockId> Add(const ub::UniqueFd& fd, Bytes offset, Bytes bytes, Access access = Access::kReadWrite) {
    return memory_->AddOwn(Dup(fd), offset, bytes, access);
  }
  absl::StatusOr<BlockId> AddAll(const ub::UniqueFd& fd, Access access = Access::kReadWrite) {
    return Add(fd, Bytes(), page() * 4, access);
  }
  void ExpectBad(const absl::StatusOr<BlockId>& answer, const std::string& field) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument) << answer.status();
    EXPECT_EQ(ub::ReasonOf(answer.status()), ub::Reason::kBadMemory);
    EXPECT_EQ(ub::DetailOf(answer.status(), "field"), field) << answer.status();
    EXPECT_EQ(device_.Size(), 3U) << "something refused was registered";
  }

  RecordingSink sink_;
  FakeRegistrar device_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_MEMORY_OWN_FIXTURE_H_
