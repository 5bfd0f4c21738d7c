#include "proto/wire/units.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#include "proto/wire/runtime_dir.h"
#include "proto/wire/unique_fd.h"

namespace ub {
namespace {

static_assert(!std::is_convertible_v<uint64_t, LeaseId>, "a number is not an id until somebody says so");
static_assert(!std::is_convertible_v<LeaseId, uint64_t>);
static_assert(!std::is_convertible_v<LeaseId, SessionId>);
static_assert(!std::is_convertible_v<uint64_t, Bytes>);
static_assert(!std::is_convertible_v<uint64_t, UbAddr>);
static_assert(!std::is_convertible_v<UbAddr, void*>);

TEST(Units, PiecesDoNotOverflow) {
  EXPECT_EQ(PiecesFor(Bytes(0), MiB(2)), 0u);
  EXPECT_EQ(PiecesFor(Bytes(1), MiB(2)), 1u);
  EXPECT_EQ(PiecesFor(MiB(2), MiB(2)), 1u);
  EXPECT_EQ(PiecesFor(Bytes(UINT64_MAX), MiB(2)), uint64_t{1} << 43);
  EXPECT_EQ(PiecesFor(Bytes(UINT64_MAX), Bytes(1)), UINT64_MAX);
}

TEST(Units, UbAddressesLieAboveAllProcessAddresses) {
  int on_stack = 0;
  EXPECT_LT(reinterpret_cast<uintptr_t>(&on_stack), UbAddr::kBase);
  EXPECT_EQ((UbAddr(UbAddr::kBase) + MiB(2)).value() - UbAddr::kBase, 2u << 20);
}

TEST(UniqueFdTest, ClosesOnceAndMovesAway) {
  UniqueFd a(::dup(0));
  int raw = a.get();
  UniqueFd b(std::move(a));
  EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_EQ(b.get(), raw);
  b.reset();
  EXPECT_LT(::dup(raw), 0);
  UniqueFd c(::dup(0));
  int released = c.release();
  EXPECT_FALSE(c.valid());
  EXPECT_EQ(::close(released), 0) << "release does not close";
}

TEST(RuntimeDirTest, GivenOneWinsThenTheEnvironment) {
  EXPECT_EQ(RuntimeDir("/given"), "/given");
  ::setenv("UB_RUNTIME_DIR", "/from-env", 1);
  EXPECT_EQ(RuntimeDir(""), "/from-env");
  EXPECT_EQ(RuntimeDir("/given"), "/given");
  ::setenv("UB_RUNTIME_DIR", "relative", 1);
  EXPECT_NE(RuntimeDir(""), "relative") << "a relative one would differ for daemon and client";
  ::unsetenv("UB_RUNTIME_DIR");
  EXPECT_EQ(RuntimeDir("") == "/run/ubd", ::geteuid() == 0);
}

// A directory of its own with a socket in it where a daemon's would be.
class FakeRuntimeDir {
 public:
  explicit FakeRuntimeDir(bool with_socket) {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    if (with_socket && ::mknod(socket_path().c_str(), S_IFSOCK | 0600, 0) != 0) std::abort();
  }
  ~FakeRuntimeDir() {
    ::unlink(socket_path().c_str());
    ::rmdir(path_.c_str());
  }
  FakeRuntimeDir(const FakeRuntimeDir&) = delete;
  FakeRuntimeDir& operator=(const FakeRuntimeDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string socket_path() const { return path_ + "/" + std::string(kRpcSocketName); }
  std::string path_ = "/tmp/ubd-test-XXXXXX";
};

TEST(RuntimeDirTest, ClientsOfNobodysDaemonFindTheSystems) {
  const std::string own = RuntimeDir("");
  struct stat info = {};
  if (::stat((own + "/ubd.sock").c_str(), &info) == 0) GTEST_SKIP() << "this user has a daemon in " << own;
  FakeRuntimeDir system(true), empty(false);
  EXPECT_EQ(ClientRuntimeDir("", system.path()), system.path());
  EXPECT_EQ(ClientRuntimeDir("", empty.path()), own) << "with no daemon anywhere, the user's own is named";
  EXPECT_EQ(ClientRuntimeDir("/given", system.path()), "/given");
  ::setenv("UB_RUNTIME_DIR", empty.path().c_str(), 1);
  EXPECT_EQ(ClientRuntimeDir("", system.path()), empty.path()) << "what was asked for is not replaced";
  ::unsetenv("UB_RUNTIME_DIR");
}

}  // namespace
}  // namespace ub
