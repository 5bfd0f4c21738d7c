// Which file system a descriptor lies on, told by the kernel's mount tables alone: no question reaches the file system,
// so a FUSE server that never answers is not noticed. Thread-safe: no state but the root.
#ifndef UBD_ENGINE_MOUNT_TABLE_H_
#define UBD_ENGINE_MOUNT_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ubd {

class MountTable {
 public:
  // `root` stands before every path under /proc; empty: the running system.
  explicit MountTable(std::string root = "") : root_(std::move(root)) {}

  // The type of the file system that this process's descriptor `fd` was opened on, as /proc/self/mountinfo says or, for
  // a mount of another namespace, that of process `pid` (0: none). None for what is not mounted there: pipes, sockets,
  // memfds, detached mounts; and where the table is longer than kMostBytes, for a client may have made it so.
  std::optional<std::string> FileSystemOf(int fd, int32_t pid) const;

  static constexpr size_t kMostBytes = size_t{16} << 20;

 private:
  std::optional<uint64_t> MountIdOf(int fd) const;
  std::optional<std::string> TypeIn(const std::string& table, uint64_t mount) const;

  std::string root_;
};

// The file system type in a line of mountinfo, if it is about `mount`.
std::optional<std::string> TypeInMountLine(std::string_view line, uint64_t mount);

}  // namespace ubd

#endif  // UBD_ENGINE_MOUNT_TABLE_H_
