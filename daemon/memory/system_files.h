// The kernel's text files (/proc, /sys) under a replaceable root, so that tests can use made trees. Thread-safe: no
// state but the root.
#ifndef UBD_MEMORY_SYSTEM_FILES_H_
#define UBD_MEMORY_SYSTEM_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ubd {

class SystemFiles {
 public:
  // `root` stands before every path; empty: the running system.
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // None when the file cannot be read.
  std::optional<std::string> Read(const std::string& path) const;
  // A file that holds one number, or "max" (no limit: none). None also when unreadable.
  std::optional<uint64_t> ReadNumber(const std::string& path) const;
  bool IsDirectory(const std::string& path) const;
  // Names in a directory, sorted; empty when unreadable.
  std::vector<std::string> List(const std::string& path) const;

 private:
  std::string root_;
};

// The number after `key` in text of lines such as "MemAvailable:  123 kB" or "inactive_file 4096"; a "kB" behind it
// multiplies by 1024. `key` must start a line or follow a blank.
std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key);

}  // namespace ubd

#endif  // UBD_MEMORY_SYSTEM_FILES_H_
