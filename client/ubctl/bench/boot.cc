#include "client/ubctl/bench/boot.h"

#include <linux/memfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/private_daemon.h"
#include "client/ubctl/bench/samples.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kBlocks = 16;
constexpr uint64_t kReserve = 2;  // touched at boot too
constexpr uint64_t kBlockBytes = uint64_t{64} << 20;
constexpr uint64_t kRounds = 5;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// As the daemon does it: a memfd per block, populated by as many threads as there are CPUs.
absl::StatusOr<uint64_t> BareTouch(bool huge) {
  std::vector<UniqueFd> blocks(kBlocks + kReserve);
  std::vector<void*> mappings(blocks.size(), MAP_FAILED);
  uint64_t before = NowNs();
  size_t workers = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      for (size_t i = worker; i < blocks.size(); i += workers) {
        blocks[i].reset(memfd_create("ubctl-bench", MFD_CLOEXEC | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0U)));
        if (ftruncate(blocks[i].get(), kBlockBytes) != 0) continue;
        mappings[i] = mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, blocks[i].get(), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t taken = NowNs() - before;
  bool all = true;
  for (void* mapping : mappings) {
    if (mapping == MAP_FAILED) {
      all = false;
    } else {
      munmap(mapping, kBlockBytes);
    }
  }
  if (!all) return absl::ResourceExhaustedError("not enough free memory of that page size for a second GiB");
  return taken;
}

uint64_t PerGib(uint64_t nanoseconds) { return nanoseconds * (uint64_t{1} << 30) / (kBlocks * kBlockBytes); }

absl::Status Measure(const BenchSetting& setting, Samples& boot, Samples& touch) {
  bool huge = setting.pool.page_bytes() == kHugePage;
  std::string config =
      absl::StrCat("pool { name: \"boot\" blocks: ", kBlocks, " block_size: \"64MiB\" reserve_blocks: ", kReserve,
                   " page_size: \"", huge ? "2MiB" : "4KiB", "\" }\n");
  for (uint64_t round = 0; round < kRounds; ++round) {
    auto bare = BareTouch(huge);
    if (!bare.ok()) return bare.status();
    touch.Add(PerGib(*bare));
    auto daemon = PrivateDaemon::Start(FindUbd(setting.ubd), config, absl::Minutes(2));
    if (!daemon.ok()) return daemon.status();
    boot.Add(PerGib(static_cast<uint64_t>(absl::ToInt64Nanoseconds(daemon->boot()))));
  }
  return absl::OkStatus();
}

}  // namespace

BootFigures BootPerGib(const BenchSetting& setting) {
  Samples boot;
  Samples touch;
  absl::Status measured = Measure(setting, boot, touch);
  if (!measured.ok()) return {NoFigure("boot_per_gib", measured), NoFigure("bare_touch_per_gib", measured)};
  std::string_view note = "a private ubd with 16 blocks of 64 MiB and a reserve of 2: from exec to READY=1";
  return {TimeFigure("boot_per_gib", boot, note),
          TimeFigure("bare_touch_per_gib", touch,
                     "18 memfds of 64 MiB made and populated by one thread a CPU, as the boot does")};
}

}  // namespace ub::ctl
