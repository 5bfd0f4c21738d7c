#include "daemon/engine/file_target.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/engine/block_device.h"
#include "daemon/engine/close_aside.h"
#include "daemon/engine/direct_probe.h"
#include "daemon/engine/mount_table.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// Durability that the client asked for when it opened the file.
constexpr int kSyncFlags = O_SYNC | O_DSYNC;

absl::Status BadFile(const std::string& what) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadFile,
                       absl::StrCat("this descriptor cannot be a target of transfers: ", what));
}

std::string LinkOf(int fd) {
  std::array<char, 256> text;
  ssize_t length = ::readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), text.data(), text.size());
  return length < 0 ? "" : std::string(text.data(), static_cast<size_t>(length));
}

const char* KindName(uint32_t mode) {
  if (S_ISDIR(mode)) return "it is a directory";
  if (S_ISCHR(mode)) return "it is a character device";
  if (S_ISFIFO(mode)) return "it is a pipe";
  return "it is neither a regular file nor a block device";
}

// With the client's own access mode and not a right more; invalid where the kernel refuses.
ub::UniqueFd Reopen(int fd, int flags) {
  // O_NONBLOCK: a lease that the client holds on the file would make open() wait for it, a drive without a disc too.
  ub::UniqueFd own(::open(absl::StrCat("/proc/self/fd/", fd).c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  // But transfers may wait: with it io_uring would answer EAGAIN instead.
  if (own.valid() && ::fcntl(own.get(), F_SETFL, flags & O_DIRECT) != 0) own.reset();
  return own;
}

uint64_t SizeOf(int fd, const struct statx& facts) {
  if (!S_ISBLK(facts.stx_mode)) return facts.stx_size;
  uint64_t bytes = 0;
  return ::ioctl(fd, BLKGETSIZE64, &bytes) == 0 ? bytes : 0;
}

// What may be asked of a mount of this type: nothing, what kind of thing lies there, or all.
enum class Trust { kNone, kNodesOnly, kFull };

Trust TrustOf(const std::optional<std::string>& type, const FileRules& rules) {
  if (!type) return Trust::kNone;
  if (std::count(rules.file_systems.begin(), rules.file_systems.end(), *type) != 0) return Trust::kFull;
  // /dev, and /dev of a container. They live in the kernel: no server to wait for.
  return *type == "devtmpfs" || *type == "tmpfs" ? Trust::kNodesOnly : Trust::kNone;
}

absl::Status CheckFlags(int flags) {
  if (flags < 0) return BadFile("it is not open");
  if ((flags & O_PATH) != 0) return BadFile("it was opened with O_PATH; open it for reading or writing");
  if ((flags & O_ACCMODE) == O_ACCMODE) return BadFile("it was opened for neither reading nor writing");
  return absl::OkStatus();
}

// Closes what the client handed over, whatever becomes of it, without trusting that close() returns.
struct Stranger {
  ub::UniqueFd fd;
  ~Stranger() { CloseAside(std::move(fd)); }
};

}  // namespace

absl::StatusOr<std::shared_ptr<FileTarget>> FileTarget::Open(ub::UniqueFd theirs, int32_t pid, const FileRules& rules,
                                                             const std::string& root) {
  Stranger stranger{std::move(theirs)};
  const int fd = stranger.fd.get();
  const int flags = ::fcntl(fd, F_GETFL);
  if (absl::Status bad = CheckFlags(flags); !bad.ok()) return bad;
  std::shared_ptr<FileTarget> target(new FileTarget);
  FileFacts& facts = target->facts_;
  std::optional<std::string> type = MountTable(root).FileSystemOf(fd, pid);
  facts.file_system = type.value_or("unknown");
  facts.why_not = ub::wire::PathReason::kFsNotTrusted;
  const Trust trust = TrustOf(type, rules);
  if (trust == Trust::kNone) {
    // What has no path at all is no file: the kernel shows it as "pipe:[123]".
    std::string link = LinkOf(fd);
    if (!type && (link.empty() || link.front() != '/')) return BadFile(absl::StrCat("it is ", link));
    return target;
  }

  struct statx stat = {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &stat) != 0) {
    return ub::ErrnoError(errno, "statx of the client's file");
  }
  if (!S_ISREG(stat.stx_mode) && !S_ISBLK(stat.stx_mode)) return BadFile(KindName(stat.stx_mode));
  facts.block_device = S_ISBLK(stat.stx_mode);
  if (!facts.block_device && trust != Trust::kFull) return target;
  facts.trusted = true;
  facts.readable = (flags & O_ACCMODE) != O_WRONLY;
  facts.writable = (flags & O_ACCMODE) != O_RDONLY;
  facts.bytes = SizeOf(fd, stat);
  BlockDevices devices(root);
  std::string disk = facts.block_device ? devices.DiskName(stat.stx_rdev_major, stat.stx_rdev_minor)
                                        : devices.DiskName(stat.stx_dev_major, stat.stx_dev_minor);
  facts.slow = devices.IsSlow(disk, rules.slow_devices);

  target->OpenOwn(fd, flags);
  if (facts.own_description) {
    stranger.fd.reset();  // a trusted file system may be asked
    return target;
  }
  if (absl::Status bad = target->Share(std::move(stranger.fd), flags); !bad.ok()) return bad;
  return target;
}

void FileTarget::OpenOwn(int theirs, int flags) {
  const int keep = flags & (O_ACCMODE | kSyncFlags);
  ub::UniqueFd staged = Reopen(theirs, keep);
  if (!staged.valid()) return;
  facts_.own_description = true;
  staged_ = std::move(staged);
  ub::UniqueFd direct = Reopen(theirs, keep | O_DIRECT);
  std::optional<DirectAlignment> alignment;
  if (direct.valid()) alignment = ProbeDirect(direct.get(), facts_.block_device);
  if (!alignment) {
    facts_.why_not = ub::wire::PathReason::kFsNotProvable;
    return;
  }
  direct_ = std::move(direct);
  facts_.direct = true;
  facts_.why_not = ub::wire::PathReason::kNone;
  facts_.memory_align = alignment->memory;
  facts_.offset_align = alignment->offset;
}

// The daemon may not open the file itself (an ordinary user's daemon, another user's file): the client's description
// serves, and the client can change its flags at any time.
absl::Status FileTarget::Share(ub::UniqueFd theirs, int flags) {
  if ((flags & O_APPEND) != 0) return BadFile("it was opened with O_APPEND; open it without");
  shared_fd_ = theirs.get();
  shared_flags_ = flags;
  if ((flags & O_DIRECT) == 0) {
    facts_.why_not = ub::wire::PathReason::kDirectRefused;
    staged_ = std::move(theirs);
    return absl::OkStatus();
  }
  std::optional<DirectAlignment> alignment = ProbeDirect(theirs.get(), facts_.block_device);
  if (!alignment) {
    // Neither path: not known to be direct, and not the page cache either.
    facts_ = {.file_system = facts_.file_system, .why_not = ub::wire::PathReason::kFsNotProvable};
    shared_fd_ = -1;
    return absl::OkStatus();
  }
  direct_ = std::move(theirs);
  facts_.direct = true;
  facts_.why_not = ub::wire::PathReason::kNone;
  facts_.memory_align = alignment->memory;
  facts_.offset_align = alignment->offset;
  return absl::OkStatus();
}

bool FileTarget::FlagsChanged() const { return shared_fd_ >= 0 && ::fcntl(shared_fd_, F_GETFL) != shared_flags_; }

}  // namespace ubd
