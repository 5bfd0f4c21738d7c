// What the tests of host memory share: pools of small blocks, a sink that records, huge pages set aside for the run,
// and counts of what this process holds, for leak checks.
#ifndef UBD_TESTS_UNIT_MEMORY_TESTING_H_
#define UBD_TESTS_UNIT_MEMORY_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/memory/host_memory.h"
#include "daemon/memory/memfd_backing.h"
#include "daemon/memory/memory.h"
#include "proto/wire/mutex.h"

namespace ubd::testing {

inline constexpr Bytes kBlock = ub::MiB(2);
inline constexpr absl::Duration kSoon =
    absl::Seconds(10);  // longer than anything here takes; reached only by a failure

HostPoolConfig SmallPool(const std::string& name, Bytes page_size, uint32_t blocks, uint32_t reserve);
// Root "": the running system.
HostMemoryDeps RealDeps(const std::string& root = "");

// "" when pages of this size can be used now, else why not.
std::string WhyNoPages(Bytes page_size);
#define SKIP_WITHOUT_PAGES(size) \
  if (std::string why = WhyNoPages(size); !why.empty()) GTEST_SKIP() << why

// Names a test's parameter: "4KiB".
std::string PageName(const ::testing::TestParamInfo<Bytes>& page);

uint64_t FreeHugePages();
// Descriptors and memfd mappings of this process.
size_t OpenFds();
size_t MemfdMaps();

enum class Event { kFree, kFresh, kRecycling, kRetired, kFreed, kTampering };
struct Seen {
  Event event;
  BlockId block;
  Charge charge;
  std::string what;
};

class RecordingSink : public ReclaimSink {
 public:
  void BlockFree(BlockId block, bool fresh) override { Add({fresh ? Event::kFresh : Event::kFree, block, {}, ""}); }
  void BlockRecycling(BlockId block) override { Add({Event::kRecycling, block, {}, ""}); }
  void BackingRetired(BlockId block, const Charge& charge) override { Add({Event::kRetired, block, charge, ""}); }
  void BackingFreed(BlockId block, const Charge& charge) override { Add({Event::kFreed, block, charge, ""}); }
  void TamperingFound(BlockId block, const Charge& charge, const std::string& what) override {
    Add({Event::kTampering, block, charge, what});
  }
  // Waits until there are `count` events of this kind.
  bool WaitFor(Event event, size_t count = 1, absl::Duration limit = kSoon);
  size_t Count(Event event);
  std::vector<Seen> All();

 private:
  void Add(Seen seen);
  size_t CountLocked(Event event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ub::Mutex mu_;
  ub::CondVar changed_;
  std::vector<Seen> seen_ ABSL_GUARDED_BY(mu_);
};

// Waits for a condition that no event tells of.
bool Eventually(const std::function<bool()>& condition, absl::Duration limit = kSoon);

// A mapping that goes with its scope.
class Mapping {
 public:
  Mapping(int fd, Bytes bytes, int protection);
  ~Mapping() { Unmap(); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  bool ok() const { return address_ != nullptr; }
  char* data() const { return static_cast<char*>(address_); }
  void Unmap();

 private:
  void* address_ = nullptr;
  size_t bytes_;
};

// A folder of made /proc and /sys files.
class MadeTree {
 public:
  MadeTree();
  ~MadeTree();
  MadeTree(const MadeTree&) = delete;
  MadeTree& operator=(const MadeTree&) = delete;
  void Write(const std::string& path, const std::string& text);
  const std::string& root() const { return root_; }
  SystemFiles files() const { return SystemFiles(root_); }

 private:
  std::string root_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_MEMORY_TESTING_H_
