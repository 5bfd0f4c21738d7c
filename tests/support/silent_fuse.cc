#include "tests/support/silent_fuse.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd::testing {
namespace {

constexpr uint64_t kFileNode = 2;
constexpr uint64_t kForEver = 1U << 30;

template <class Body>
void Answer(int device, uint64_t request, const Body& body) {
  fuse_out_header header = {.len = sizeof header + sizeof body, .error = 0, .unique = request};
  std::array<iovec, 2> parts = {iovec{&header, sizeof header}, iovec{const_cast<Body*>(&body), sizeof body}};
  // Fails only once the mount has ended.
  [[maybe_unused]] ssize_t written = ::writev(device, parts.data(), parts.size());
}

// The few requests that are answered.
void Handle(int device, const fuse_in_header& request) {
  if (request.opcode == FUSE_INIT) {
    fuse_init_out body = {};
    body.major = FUSE_KERNEL_VERSION;
    body.minor = 31;
    body.max_write = 128 << 10;
    Answer(device, request.unique, body);
  } else if (request.opcode == FUSE_LOOKUP) {
    fuse_entry_out body = {};
    body.nodeid = kFileNode;
    body.entry_valid = kForEver;
    // Attributes are never valid: whoever wants them asks the server.
    body.attr.ino = kFileNode;
    body.attr.size = 1 << 30;
    body.attr.mode = S_IFREG | 0666;
    body.attr.nlink = 1;
    Answer(device, request.unique, body);
  } else if (request.opcode == FUSE_OPEN) {
    fuse_open_out body = {};
    body.fh = 1;
    Answer(device, request.unique, body);
  }
}

}  // namespace

std::string SilentFuse::WhyNot() {
  if (::geteuid() != 0) return "only root may mount";
  ub::UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  return device.valid() ? "" : absl::StrCat("/dev/fuse: ", std::strerror(errno));
}

absl::StatusOr<std::unique_ptr<SilentFuse>> SilentFuse::Mount(const std::string& mount_point) {
  std::unique_ptr<SilentFuse> fuse(new SilentFuse);
  fuse->stop_.reset(::eventfd(0, EFD_CLOEXEC));
  fuse->device_.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fuse->device_.valid()) return ub::ErrnoError(errno, "open /dev/fuse");
  std::string options = absl::StrCat("fd=", fuse->device_.get(), ",rootmode=40000,user_id=0,group_id=0,allow_other");
  if (::mount("silent", mount_point.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return ub::ErrnoError(errno, absl::StrCat("mount of FUSE on ", mount_point));
  }
  fuse->mount_point_ = mount_point;
  fuse->server_ = std::thread([raw = fuse.get()] { raw->Serve(); });
  return fuse;
}

SilentFuse::~SilentFuse() {
  if (mount_point_.empty()) return;
  // Force ends the connection, and with it all that waits; detach lets go of the folder while files are open.
  ::umount2(mount_point_.c_str(), MNT_FORCE | MNT_DETACH);
  ::eventfd_write(stop_.get(), 1);
  server_.join();
}

void SilentFuse::Serve() const {
  std::vector<char> buffer(FUSE_MIN_READ_BUFFER + (128 << 10));
  std::array<pollfd, 2> wanted = {pollfd{device_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return;
    if (wanted[1].revents != 0) return;
    ssize_t got = ::read(device_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == ENODEV) return;
    if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
    fuse_in_header request;
    std::memcpy(&request, buffer.data(), sizeof request);
    Handle(device_.get(), request);
  }
}

}  // namespace ubd::testing
