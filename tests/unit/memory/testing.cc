#include "tests/unit/memory/testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/memory/huge_pages.h"
#include "daemon/memory/mono_now.h"
#include "daemon/memory/page_size.h"
#include "proto/wire/size_text.h"

namespace ubd::testing {

HostPoolConfig SmallPool(const std::string& name, Bytes page_size, uint32_t blocks, uint32_t reserve) {
  HostPoolConfig pool;
  pool.spec = {.name = name, .kind = "host", .block_bytes = kBlock, .blocks = blocks};
  pool.page_size = page_size;
  pool.reserve_blocks = reserve;
  return pool;
}

HostMemoryDeps RealDeps(const std::string& root) {
  SystemFiles files(root);
  return {files, RaiseProcessLimits(SystemFiles()), ""};
}

std::string PageName(const ::testing::TestParamInfo<Bytes>& page) { return ub::FormatSize(page.param); }

uint64_t FreeHugePages() {
  std::optional<HugePageCounts> counts = ReadHugePages(SystemFiles(), ub::MiB(2), std::nullopt);
  return counts ? counts->free : 0;
}

std::string WhyNoPages(Bytes page_size) {
  if (page_size == SmallPageSize()) return "";
  if (page_size != ub::MiB(2)) return absl::StrCat("no pages of ", page_size.count(), " bytes here");
  if (FreeHugePages() >= 24) return "";
  return "24 huge pages of 2MiB are needed and could not be reserved; run as root, or sysctl vm.nr_hugepages=64";
}

size_t OpenFds() { return SystemFiles().List("/proc/self/fd").size(); }

size_t MemfdMaps() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += absl::StrContains(line, "memfd:ubd") ? 1 : 0;
  return count;
}

void RecordingSink::Add(Seen seen) {
  ub::MutexLock lock(&mu_);
  seen_.push_back(std::move(seen));
  changed_.SignalAll();
}

size_t RecordingSink::CountLocked(Event event) const {
  return static_cast<size_t>(
      std::count_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.event == event; }));
}

bool RecordingSink::WaitFor(Event event, size_t count, absl::Duration limit) {
  const MonoTime deadline = MonoNow() + limit;
  ub::MutexLock lock(&mu_);
  while (CountLocked(event) < count) {
    const MonoTime now = MonoNow();
    if (deadline <= now) return false;
    changed_.WaitWithTimeout(&mu_, deadline - now);
  }
  return true;
}

size_t RecordingSink::Count(Event event) {
  ub::MutexLock lock(&mu_);
  return CountLocked(event);
}

std::vector<Seen> RecordingSink::All() {
  ub::MutexLock lock(&mu_);
  return seen_;
}

bool Eventually(const std::function<bool()>& condition, absl::Duration limit) {
  for (const MonoTime deadline = MonoNow() + limit; MonoNow() < deadline; ::usleep(1000)) {
    if (condition()) return true;
  }
  return condition();
}

Mapping::Mapping(int fd, Bytes bytes, int protection) : bytes_(bytes.count()) {
  void* address = ::mmap(nullptr, bytes_, protection, MAP_SHARED, fd, 0);
  if (address != MAP_FAILED) address_ = address;
}

void Mapping::Unmap() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
  address_ = nullptr;
}

MadeTree::MadeTree() {
  char name[] = "/tmp/ubd-tree-XXXXXX";
  root_ = ::mkdtemp(name);
}

MadeTree::~MadeTree() { std::filesystem::remove_all(root_); }

void MadeTree::Write(const std::string& path, const std::string& text) {
  std::filesystem::path file = root_ + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace ubd::testing
