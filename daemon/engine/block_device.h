// Names of block devices, and which of them may hang for long. Thread-safe: no state but the root.
#ifndef UBD_ENGINE_BLOCK_DEVICE_H_
#define UBD_ENGINE_BLOCK_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ubd {

class BlockDevices {
 public:
  // `root` stands before every path under /sys; empty: the running system.
  explicit BlockDevices(std::string root = "") : root_(std::move(root)) {}

  // "vda" for the disk and for each of its partitions; "" for a number that is no disk's (btrfs makes up its own).
  std::string DiskName(uint32_t major, uint32_t minor) const;
  // The disk, or one that it is made of, has a name that starts with one of `prefixes`.
  bool IsSlow(const std::string& disk, const std::vector<std::string>& prefixes) const;

 private:
  bool IsSlow(const std::string& disk, const std::vector<std::string>& prefixes, int depth) const;

  std::string root_;
};

}  // namespace ubd

#endif  // UBD_ENGINE_BLOCK_DEVICE_H_
