#include "daemon/engine/safe_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "daemon/engine/mono_ns.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

constexpr size_t kBytes = 1 << 20;

TEST(SafeCopy, CopiesEveryByteAndNoMore) {
  std::vector<char> from(kBytes), to(kBytes + 2, 'x');
  for (size_t i = 0; i < kBytes; ++i) from[i] = static_cast<char>(i * 7);
  int error = -1;
  EXPECT_EQ(SafeCopy(to.data() + 1, from.data(), kBytes, error), kBytes);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(memcmp(to.data() + 1, from.data(), kBytes), 0);
  EXPECT_EQ(to.front(), 'x');
  EXPECT_EQ(to.back(), 'x');
  EXPECT_EQ(SafeCopy(to.data(), from.data(), 0, error), 0U);
}

// Pages beyond the end of a file: memcpy would die of SIGBUS, as it does where a client has punched huge pages away.
class TruncatedMapping {
 public:
  TruncatedMapping() : fd_(memfd_create("t", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), kBytes), 0);
    data_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    EXPECT_NE(data_, MAP_FAILED);
    memset(data_, 1, kBytes);
    EXPECT_EQ(ftruncate(fd_.get(), kBytes / 2), 0);
  }
  ~TruncatedMapping() { munmap(data_, kBytes); }
  void* data() const { return data_; }

 private:
  ub::UniqueFd fd_;
  void* data_;
};

TEST(SafeCopy, MissingSourcePagesAreAnError) {
  TruncatedMapping gone;
  std::vector<char> to(kBytes);
  int error = 0;
  EXPECT_EQ(SafeCopy(to.data(), gone.data(), kBytes, error), kBytes / 2);
  EXPECT_EQ(error, EFAULT);
}

TEST(SafeCopy, MissingTargetPagesAreAnError) {
  TruncatedMapping gone;
  std::vector<char> from(kBytes, 5);
  int error = 0;
  EXPECT_LE(SafeCopy(gone.data(), from.data(), kBytes, error), kBytes / 2);
  EXPECT_EQ(error, EFAULT);
}

TEST(SafeCopy, UnmappedIsAnErrorToo) {
  std::vector<char> from(4096);
  int error = 0;
  EXPECT_EQ(SafeCopy(nullptr, from.data(), 4096, error), 0U);
  EXPECT_EQ(error, EFAULT);
}

// Within a factor that no mistake (a copy by words, a second copy) would stay in.
TEST(SafeCopy, IsAboutAsFastAsMemcpy) {
  constexpr size_t kMuch = 16 << 20;
  std::vector<char> from(kMuch, 1), to(kMuch, 2);
  uint64_t best_safe = kNeverNs, best_plain = kNeverNs;
  for (int round = 0; round < 9; ++round) {
    int error = 0;
    uint64_t start = MonoNs();
    ASSERT_EQ(SafeCopy(to.data(), from.data(), kMuch, error), kMuch);
    best_safe = std::min(best_safe, MonoNs() - start);
    start = MonoNs();
    memcpy(to.data(), from.data(), kMuch);
    best_plain = std::min(best_plain, MonoNs() - start);
    ASSERT_EQ(to[static_cast<size_t>(round)], 1);
  }
  EXPECT_LT(best_safe, best_plain * 6);
}

}  // namespace
}  // namespace ubd
