// Boot time of a host pool against a bare parallel touch of the same amount and kind of memory: memfd blocks of the
// same size, mapped and touched once per page on as many threads. Runs alternate, since the machine's speed drifts;
// prints the medians in ns per GiB and their ratio.
//   boot_bench [MiB in all: 1024] [page KiB: 4 or 2048] [rounds: 7] [block MiB: 64] [lock: 0 or 1]
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "daemon/memory/memory.h"
#include "daemon/memory/mono_now.h"

namespace {

struct Setup {
  uint64_t total;
  uint64_t page;
  uint64_t block;
  bool lock;
  uint32_t blocks() const { return static_cast<uint32_t>(total / block); }
};

void TouchBlock(const Setup& setup, std::vector<std::pair<int, void*>>& made, size_t index) {
  unsigned flags = MFD_CLOEXEC;
  if (setup.page > 4096) flags |= MFD_HUGETLB | static_cast<unsigned>(std::countr_zero(setup.page)) << 26;
  int fd = ::memfd_create("bare", flags);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(setup.block)) != 0) std::abort();
  void* map = ::mmap(nullptr, setup.block, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) std::abort();
  for (uint64_t at = 0; at < setup.block; at += setup.page) static_cast<volatile char*>(map)[at] = 1;
  made[index] = {fd, map};
}

double BareTouch(const Setup& setup) {
  std::vector<std::pair<int, void*>> made(setup.blocks());
  std::atomic<size_t> next{0};
  const ubd::MonoTime start = ubd::MonoNow();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1U); ++i) {
    threads.emplace_back([&] {
      for (size_t k = next++; k < made.size(); k = next++) TouchBlock(setup, made, k);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const absl::Duration took = ubd::MonoNow() - start;
  for (auto [fd, map] : made) {
    ::munmap(map, setup.block);
    ::close(fd);
  }
  return absl::ToDoubleNanoseconds(took) * double(uint64_t{1} << 30) / double(setup.total);
}

double Boot(const Setup& setup) {
  ubd::HostPoolConfig pool;
  pool.spec = {.name = "bench", .kind = "host", .block_bytes = ubd::Bytes(setup.block), .blocks = setup.blocks()};
  pool.page_size = ubd::Bytes(setup.page);
  pool.reserve_blocks = 0;
  pool.lock_pages = setup.lock ? ubd::Demand::kRequired : ubd::Demand::kOff;
  const ubd::MonoTime start = ubd::MonoNow();
  auto memory = ubd::Memory::Create({pool}, nullptr);
  const absl::Duration took = ubd::MonoNow() - start;
  if (!memory.ok()) {
    std::fprintf(stderr, "%s\n", std::string(memory.status().message()).c_str());
    std::exit(1);
  }
  return absl::ToDoubleNanoseconds(took) * double(uint64_t{1} << 30) / double(setup.total);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  auto argument = [&](int index, uint64_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
  };
  const uint64_t rounds = std::max<uint64_t>(argument(3, 7), 1);
  const Setup setup{argument(1, 1024) << 20, argument(2, 4) << 10, argument(4, 64) << 20, argument(5, 0) != 0};
  if (setup.block == 0 || setup.page == 0 || setup.total < setup.block) {
    std::fprintf(stderr, "usage: boot_bench [MiB] [page KiB] [rounds] [block MiB] [lock]\n");
    return 2;
  }
  std::vector<double> touch;
  std::vector<double> boot;
  for (uint64_t i = 0; i < rounds; ++i) {
    touch.push_back(BareTouch(setup));
    boot.push_back(Boot(setup));
  }
  std::printf("{\"touch_ns_per_gib\": %.0f, \"boot_ns_per_gib\": %.0f, \"ratio\": %.3f, \"rounds\": %llu}\n",
              Median(touch), Median(boot), Median(boot) / Median(touch), static_cast<unsigned long long>(rounds));
  return 0;
}
