#include "client/ubctl/load/cold_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kWindow = uint64_t{1} << 30;
constexpr double kHardlyAnything = 0.01;

// Pages of [offset, offset + size) that are cached; nothing when it cannot be mapped.
std::optional<uint64_t> CachedPages(int fd, uint64_t offset, uint64_t size, uint64_t page) {
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapping == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> pages((size + page - 1) / page);
  bool told = mincore(mapping, size, pages.data()) == 0;
  munmap(mapping, size);
  if (!told) return std::nullopt;
  return static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char c) { return (c & 1) != 0; }));
}

}  // namespace

std::optional<double> CachedShare(int fd, uint64_t bytes) {
  if (bytes == 0) return 0;
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t cached = 0;
  for (uint64_t at = 0; at < bytes; at += kWindow) {
    auto pages = CachedPages(fd, at, std::min(kWindow, bytes - at), page);
    if (!pages.has_value()) return std::nullopt;
    cached += *pages;
  }
  uint64_t pages = (bytes + page - 1) / page;
  return static_cast<double>(cached) / static_cast<double>(pages);
}

std::string DropCache(int fd, uint64_t bytes) {
  (void)fdatasync(fd);  // dirty pages cannot be dropped; what fails here shows below
  int error = posix_fadvise(fd, 0, static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
  if (error != 0) return absl::StrCat("the page cache of the file could not be dropped: ", strerror(error));
  std::optional<double> left = CachedShare(fd, bytes);
  if (!left.has_value()) return "whether the file is out of the page cache could not be seen: it cannot be mapped";
  if (*left <= kHardlyAnything) return "";
  return absl::StrFormat(
      "%.0f%% of the file stayed in the page cache, or so it looks: somebody else maps or writes it, "
      "its file system lives in memory, or it is not yours (the kernel tells owners only)",
      *left * 100);
}

}  // namespace ub::ctl
