// What is refused as a client's own memory: each fault by its name, and none at the daemon's cost.
#include <gmock/gmock.h>
#include <linux/fuse.h>
#include <sys/mount.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/memory/own_fixture.h"

namespace ubd::testing {
namespace {

using OwnRefused = Own;

TEST_P(OwnRefused, WhatIsNoMemfd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ub::UniqueFd read_end(ends[0]);
  ub::UniqueFd write_end(ends[1]);
  ExpectBad(AddAll(read_end), "fd");
  ExpectBad(AddAll(ub::UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)), Access::kReadOnly), "fd");
  ExpectBad(AddAll(ub::UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC))), "fd");
  ExpectBad(AddAll(ub::UniqueFd(::open("/", O_PATH | O_CLOEXEC))), "fd");
  ExpectBad(AddAll(ub::UniqueFd()), "fd");
}

TEST_P(OwnRefused, WhatIsNotSealed) {
  for (int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    ub::UniqueFd client = ClientMemfd(page() * 4, page());
    FillPages(client.get(), page() * 4, page(), 'c');
    if (seals != 0) Seal(client, seals);
    ExpectBad(AddAll(client), "fd");
  }
}

TEST_P(OwnRefused, WhatTheDescriptorDoesNotAllow) {
  ub::UniqueFd client = Good();
  ub::UniqueFd write_only(::open(absl::StrCat("/proc/self/fd/", client.get()).c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(write_only.valid());
  ExpectBad(AddAll(write_only), "fd");
  ExpectBad(AddAll(*ReopenMemfd(client.get(), Access::kReadOnly), Access::kReadWrite), "access");
  Seal(client, F_SEAL_FUTURE_WRITE);
  ExpectBad(AddAll(client, Access::kReadWrite), "access");
}

TEST_P(OwnRefused, RangesThatCannotBe) {
  ub::UniqueFd client = Good();
  const Bytes huge(UINT64_MAX - page().count() + 1);  // a multiple of any page
  ExpectBad(Add(client, Bytes(1), page()), "offset");
  ExpectBad(Add(client, page() - Bytes(1), page()), "offset");
  ExpectBad(Add(client, Bytes(), Bytes()), "bytes");
  ExpectBad(Add(client, Bytes(), page() + Bytes(1)), "bytes");
  ExpectBad(Add(client, Bytes(), page() * 5), "bytes");
  ExpectBad(Add(client, page(), page() * 4), "bytes");
  ExpectBad(Add(client, page() * 4, page()), "bytes");
  ExpectBad(Add(client, huge, page()), "bytes");
  ExpectBad(Add(client, page(), huge), "bytes");
  ExpectBad(Add(client, huge, huge), "bytes");
}

TEST_P(OwnRefused, MoreThanOneGibibyte) {
  if (page() > SmallPageSize()) return;
  ub::UniqueFd client = ClientMemfd(ub::GiB(2), page());
  Seal(client);
  ExpectBad(Add(client, Bytes(), ub::GiB(1) + page()), "bytes");
}

TEST_P(OwnRefused, PagesThatAreNotThere) {
  ub::UniqueFd sparse = ClientMemfd(page() * 4, page());
  Seal(sparse);
  ExpectBad(AddAll(sparse), "fd");
  for (uint64_t hole = 0; hole < 4; ++hole) {
    ub::UniqueFd punched = Good();
    ASSERT_EQ(::fallocate(punched.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>(page().count() * hole), static_cast<off_t>(page().count())),
              0);
    ExpectBad(AddAll(punched), "fd");
  }
}

// As many pages as the file has bytes, but some of them beyond its end: the daemon would pay for the hole.
TEST_P(OwnRefused, HolesThatPagesBeyondTheEndMakeUpFor) {
  ub::UniqueFd client = ClientMemfd(page() * 4, page());
  FillPages(client.get(), page() * 3, page(), 'c');
  ASSERT_EQ(::fallocate(client.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(page().count() * 4),
                        static_cast<off_t>(page().count() * 2)),
            0);
  Seal(client);
  ExpectBad(AddAll(client), "fd");
}

// A file system whose server answers only until the file is open.
class SilentServer {
 public:
  SilentServer() : device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    char name[] = "/tmp/ubd-fuse-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::string options = absl::StrCat("fd=", device_.get(), ",rootmode=100000,user_id=0,group_id=0");
    mounted_ = ::mount("ubd-test", (folder_ + File()).c_str(), "fuse", 0, options.c_str()) == 0;
    if (mounted_) server_ = std::thread([this] { Serve(); });
  }
  ~SilentServer() { Abort(); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  bool mounted() const { return mounted_; }
  // Somebody closes the file, and waits.
  bool asked_to_flush() const { return flush_; }
  int Open() const { return ::open(Path().c_str(), O_RDWR | O_CLOEXEC); }
  // Ends all that hangs.
  void Abort() {
    if (mounted_) ::umount2(Path().c_str(), MNT_FORCE | MNT_DETACH);
    if (server_.joinable()) server_.join();
    device_.reset();
    ::unlink(Path().c_str());
    ::rmdir(folder_.c_str());
    mounted_ = false;
  }

 private:
  // The mount is on a single file, which is its root.
  const char* File() {
    ub::UniqueFd made(::open((folder_ + "/f").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return "/f";
  }
  std::string Path() const { return folder_ + "/f"; }

  template <class Body>
  void Answer(const fuse_in_header& to, const Body& body) {
    char message[sizeof(fuse_out_header) + sizeof(Body)];
    fuse_out_header header = {sizeof message, 0, to.unique};
    std::memcpy(message, &header, sizeof header);
    std::memcpy(message + sizeof header, &body, sizeof body);
    ASSERT_EQ(::write(device_.get(), message, sizeof message), static_cast<ssize_t>(sizeof message));
  }

  void Serve() {
    alignas(fuse_in_header) char request[1 << 17];
    while (::read(device_.get(), request, sizeof request) > 0) {
      const auto& header = *reinterpret_cast<fuse_in_header*>(request);
      if (header.opcode == FUSE_INIT) {
        fuse_init_out out = {};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_write = 4096;
        Answer(header, out);
      } else if (header.opcode == FUSE_OPEN) {
        Answer(header, fuse_open_out{});
      } else if (header.opcode == FUSE_FLUSH) {
        flush_ = true;
      }
    }
  }

  ub::UniqueFd device_;
  std::string folder_;
  bool mounted_ = false;
  std::atomic<bool> flush_ = false;
  std::thread server_;
};

TEST_P(OwnRefused, FileOfAServerThatNeverAnswersHangsNobody) {
  if (::geteuid() != 0) return;  // the run as root asks this
  SilentServer server;
  if (!server.mounted()) GTEST_SKIP() << "FUSE file systems cannot be mounted here";
  int fd = server.Open();
  ASSERT_GE(fd, 0) << std::strerror(errno);
  std::atomic<bool> done = false;
  std::thread caller([&] {
    absl::Status answer = memory_->AddOwn(ub::UniqueFd(fd), Bytes(), page(), Access::kReadWrite).status();
    EXPECT_EQ(ub::ReasonOf(answer), ub::Reason::kBadMemory);
    done = true;
  });
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_TRUE(Eventually([&] { return server.asked_to_flush(); })) << "it was not even tried";
  EXPECT_TRUE(AddAll(Good()).ok()) << "others go on";
  server.Abort();
  caller.join();
}

INSTANTIATE_TEST_SUITE_P(Pages, OwnRefused, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
