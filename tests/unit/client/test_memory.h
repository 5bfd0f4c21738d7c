// What the daemon's side of shared memory looks like, made by the test itself.
#ifndef UB_TESTS_CLIENT_TEST_MEMORY_H_
#define UB_TESTS_CLIENT_TEST_MEMORY_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client/src/lease_impl.h"
#include "client/src/word_page.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/unique_fd.h"

namespace ub {

inline UniqueFd MakeMemfd(uint64_t bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW) {
  UniqueFd fd(::memfd_create("test-block", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) != 0)
    ::abort();
  if (seals != 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) ::abort();
  return fd;
}

// The daemon's view of a lease-word page.
class TestPage {
 public:
  explicit TestPage(int seals = F_SEAL_SHRINK | F_SEAL_GROW) : fd_(MakeMemfd(wire::kLeasePageBytes, seals)) {
    void* at = ::mmap(nullptr, wire::kLeasePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    page_ = static_cast<wire::LeasePage*>(at);
    page_->header.magic = wire::kLeasePageMagic;
    page_->header.word_count = wire::kWordsPerSession;
  }
  ~TestPage() { ::munmap(page_, wire::kLeasePageBytes); }
  TestPage(const TestPage&) = delete;
  TestPage& operator=(const TestPage&) = delete;

  int fd() const { return fd_.get(); }
  UniqueFd Dup() const { return UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }
  wire::LeasePage& page() { return *page_; }
  void Busy(uint32_t word, uint64_t generation) {
    page_->words[word].word.store(wire::PackWord(wire::WordState::kBusy, generation));
  }
  wire::WordState State(uint32_t word) const { return wire::StateOfWord(page_->words[word].word.load()); }

 private:
  UniqueFd fd_;
  wire::LeasePage* page_;
};

// Takes leases back and counts.
class TestHost : public LeaseHost {
 public:
  absl::Status GiveBack(std::unique_ptr<LeaseImpl> lease) override {
    ++given_back;
    last = lease->info().id;
    last_cacheable = lease->cacheable();
    return absl::OkStatus();
  }
  absl::StatusOr<Ticket> Share(LeaseImpl&, const ShareOptions&) override { return Ticket(); }
  void GiveBackLater(std::unique_ptr<LeaseImpl> lease) override {
    ++later;
    GiveBack(std::move(lease)).IgnoreError();
  }
  int given_back = 0;
  int later = 0;  // of these, without waiting
  LeaseId last;
  bool last_cacheable = false;
};

// Runs `what` in a forked child and returns its wait status; exit code 0 unless `what` says otherwise.
inline int InChild(const std::function<int()>& what) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(what());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// Sanitizers keep shadow memory, which faults on its own: page faults are counted in plain builds only.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kShadowMemory = true;
#elif defined(__has_feature)
inline constexpr bool kShadowMemory = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kShadowMemory = false;
#endif

inline long PageFaults() {
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace ub

#endif  // UB_TESTS_CLIENT_TEST_MEMORY_H_
