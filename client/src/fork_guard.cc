#include "client/src/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "proto/wire/error.h"

namespace ub {
namespace {

constexpr size_t kMaxFds = 64;
constinit std::array<std::atomic<int>, kMaxFds> g_fds = {};  // fd + 1; 0: unused
constinit std::atomic<uint64_t> g_epochs = 0;
constinit std::atomic<uint64_t> g_plain_mark =
    0;  // where the kernel cannot wipe pages: zeroed by the fork handler alone
std::atomic<uint64_t>* g_mark = nullptr;

// Runs in the child between fork and return: only what is async-signal-safe.
void InChild() {
  g_mark->store(0, std::memory_order_relaxed);
  for (std::atomic<int>& entry : g_fds) {
    int fd = entry.exchange(0, std::memory_order_relaxed) - 1;
    if (fd >= 0) ::close(fd);
  }
}

std::atomic<uint64_t>* MakeMark() {
  size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* mark = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool wiped = mark != MAP_FAILED && ::madvise(mark, page, MADV_WIPEONFORK) == 0;
  g_mark = wiped ? new (mark) std::atomic<uint64_t>(0) : &g_plain_mark;
  ::pthread_atfork(nullptr, nullptr, InChild);
  return g_mark;
}

std::atomic<uint64_t>* Mark() {
  static std::atomic<uint64_t>* mark = MakeMark();
  return mark;
}

}  // namespace

uint64_t ForkEpoch() {
  std::atomic<uint64_t>* mark = Mark();
  uint64_t epoch = mark->load(std::memory_order_relaxed);
  if (epoch != 0) return epoch;
  // First use in this process. g_epochs is copied by fork, so a child's numbers are all new to it.
  uint64_t fresh = g_epochs.fetch_add(1) + 1;
  return mark->compare_exchange_strong(epoch, fresh) ? fresh : epoch;
}

ForkGuard::ForkGuard() : mark_(Mark()), epoch_(ForkEpoch()) {}

absl::Status ForkGuard::Check() const {
  if (!forked()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, Reason::kForked,
      "this belongs to the parent process: its memory is not mapped in a forked child; exec a program that connects by "
      "itself, or fork before the first Connect");
}

void CloseInChild(int fd) {
  Mark();
  for (std::atomic<int>& entry : g_fds) {
    int unused = 0;
    if (entry.compare_exchange_strong(unused, fd + 1)) return;
  }
}

void ForgetInChild(int fd) {
  for (std::atomic<int>& entry : g_fds) {
    int mine = fd + 1;
    if (entry.compare_exchange_strong(mine, 0)) return;
  }
}

}  // namespace ub
