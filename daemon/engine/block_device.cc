#include "daemon/engine/block_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/memory/system_files.h"

namespace ubd {

std::string BlockDevices::DiskName(uint32_t major, uint32_t minor) const {
  std::string entry = absl::StrCat("/sys/dev/block/", major, ":", minor);
  std::array<char, 4096> target;
  ssize_t length = ::readlink((root_ + entry).c_str(), target.data(), target.size());
  if (length <= 0 || static_cast<size_t>(length) == target.size()) return "";
  std::filesystem::path path(std::string(target.data(), static_cast<size_t>(length)));
  // A partition lies in its disk's folder.
  bool partition = SystemFiles(root_).Read(entry + "/partition").has_value();
  return (partition ? path.parent_path() : path).filename().string();
}

bool BlockDevices::IsSlow(const std::string& disk, const std::vector<std::string>& prefixes) const {
  // Deeper stacks than this nobody builds; the bound is for a broken tree.
  constexpr int kDeepest = 8;
  return IsSlow(disk, prefixes, kDeepest);
}

bool BlockDevices::IsSlow(const std::string& disk, const std::vector<std::string>& prefixes, int depth) const {
  if (disk.empty() || depth == 0) return false;
  auto starts = [&](const std::string& prefix) { return absl::StartsWith(disk, prefix); };
  if (std::any_of(prefixes.begin(), prefixes.end(), starts)) return true;
  for (const std::string& part : SystemFiles(root_).List(absl::StrCat("/sys/block/", disk, "/slaves"))) {
    // A part may be a partition; its name starts with its disk's, and that is all that is asked here.
    if (IsSlow(part, prefixes, depth - 1)) return true;
  }
  return false;
}

}  // namespace ubd
