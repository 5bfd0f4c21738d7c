#include "daemon/offer_judge.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/engine/mount_table.h"

namespace ubd {
namespace {

// File systems of device nodes: the kernel alone answers for them.
constexpr std::array<std::string_view, 4> kNodes = {"devtmpfs", "tmpfs", "ramfs", "devpts"};

bool IsMemory(int fd) { return ::fcntl(fd, F_GET_SEALS) >= 0; }

bool IsPipeOrSocket(int fd) {
  int type = 0;
  socklen_t length = sizeof(type);
  return ::fcntl(fd, F_GETPIPE_SZ) >= 0 || ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
}

bool IsBlockDevice(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 && S_ISBLK(info.st_mode);
}

}  // namespace

OfferJudge MakeOfferJudge(std::vector<std::string> file_systems) {
  return [trusted = std::move(file_systems)](int fd, int32_t pid) -> Verdict {
    if (IsMemory(fd)) return {Verdict::Kind::kHarmless, ""};
    if (IsPipeOrSocket(fd)) return {Verdict::Kind::kNoFile, ""};
    const std::optional<std::string> type = MountTable().FileSystemOf(fd, pid);
    if (!type) return {Verdict::Kind::kUntrusted, "unknown"};
    if (std::find(trusted.begin(), trusted.end(), *type) != trusted.end()) return {Verdict::Kind::kHarmless, ""};
    if (std::find(kNodes.begin(), kNodes.end(), *type) == kNodes.end()) return {Verdict::Kind::kUntrusted, *type};
    return {IsBlockDevice(fd) ? Verdict::Kind::kHarmless : Verdict::Kind::kNoFile, ""};
  };
}

}  // namespace ubd
