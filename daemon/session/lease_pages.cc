// The words of all sessions over sealed memfds, one per session. What lies in a page is the client's to scribble on:
// which words are given out, and for which generation, is kept here in the daemon's own memory, and a page is only ever
// stored to, or read once and compared.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bitset>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/session/server.h"
#include "proto/wire/error.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/mutex.h"

namespace ubd {
namespace {

using ub::wire::LeasePage;
using ub::wire::PackWord;
using ub::wire::WordState;

// A client takes a lease back in nanoseconds, but not this often between two looks: more is nonsense.
constexpr uint64_t kMostTakeBacksPerLook = uint64_t{1} << 40;

struct Unmap {
  void operator()(LeasePage* page) const { ::munmap(page, sizeof(LeasePage)); }
};
using MappedPage = std::unique_ptr<LeasePage, Unmap>;

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

// Seals: a shrunk page would be a SIGBUS for the daemon. SEAL_SEAL: the client may not add seals of its own.
absl::StatusOr<ub::UniqueFd> MakeMemfd() {
  ub::UniqueFd fd(::memfd_create("ub-lease-words", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ub::ErrnoError(errno, "memfd_create for a lease page");
  // 0600: another uid cannot open it anew through /proc.
  if (::fchmod(fd.get(), 0600) != 0 || ::ftruncate(fd.get(), sizeof(LeasePage)) != 0)
    return ub::ErrnoError(errno, "sizing a lease page");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return ub::ErrnoError(errno, "sealing a lease page");
  return fd;
}

class Page {
 public:
  explicit Page(MappedPage page) : page_(std::move(page)) {}

  std::optional<uint32_t> Assign(Generation generation) {
    for (uint32_t i = 0; i < ub::wire::kWordsPerSession; ++i) {
      if (used_[i]) continue;
      used_[i] = true;
      generations_[i] = generation;
      page_->words[i].word.store(PackWord(WordState::kBusy, generation.value()), std::memory_order_seq_cst);
      return i;
    }
    return std::nullopt;
  }
  void Drop(uint32_t word, Generation generation) {
    if (!Holds(word, generation)) return;
    page_->words[word].word.store(PackWord(WordState::kRecalled, generation.value()), std::memory_order_seq_cst);
    used_[word] = false;
  }
  bool TryRecall(uint32_t word, Generation generation) {
    return Holds(word, generation) && ub::wire::TryRecall(page_->words[word], generation.value());
  }
  bool IsIdle(uint32_t word, Generation generation) const {
    return Holds(word, generation) &&
           page_->words[word].word.load(std::memory_order_seq_cst) == PackWord(WordState::kIdle, generation.value());
  }
  void SetPressure(bool pressure) { page_->header.pressure.store(pressure ? 1 : 0, std::memory_order_seq_cst); }
  bool in_use() const { return used_.any(); }

  // New take-backs since the last look. A counter that went back or leapt is the client's joke: it only moves the base.
  uint64_t NewTakeBacks() {
    uint64_t now = page_->header.take_backs.load(std::memory_order_relaxed);
    uint64_t before = std::exchange(take_backs_, now);
    return now >= before && now - before <= kMostTakeBacksPerLook ? now - before : 0;
  }

 private:
  bool Holds(uint32_t word, Generation generation) const {
    return word < ub::wire::kWordsPerSession && used_[word] && generations_[word] == generation;
  }

  MappedPage page_;
  std::bitset<ub::wire::kWordsPerSession> used_;
  std::array<Generation, ub::wire::kWordsPerSession> generations_;
  uint64_t take_backs_ = 0;
};

class SharedLeasePages : public LeasePages {
 public:
  absl::StatusOr<ub::UniqueFd> OpenPage(SessionId session) override;
  void ClosePage(SessionId session) override;
  uint64_t TakeBacks() override;

  std::optional<uint32_t> Assign(SessionId session, Generation generation) override {
    ub::MutexLock lock(&mu_);
    Page* page = Find(session);
    if (page == nullptr) return std::nullopt;
    // Pages without words are not told of pressure; their clients have nothing to give back.
    if (!page->in_use()) page->SetPressure(pressure_);
    return page->Assign(generation);
  }
  void Drop(SessionId session, uint32_t word, Generation generation) override {
    ub::MutexLock lock(&mu_);
    if (Page* page = Find(session)) page->Drop(word, generation);
  }
  bool TryRecall(SessionId session, uint32_t word, Generation generation) override {
    ub::MutexLock lock(&mu_);
    Page* page = Find(session);
    return page != nullptr && page->TryRecall(word, generation);
  }
  bool IsIdle(SessionId session, uint32_t word, Generation generation) override {
    ub::MutexLock lock(&mu_);
    Page* page = Find(session);
    return page != nullptr && page->IsIdle(word, generation);
  }
  void SetPressure(bool pressure) override {
    ub::MutexLock lock(&mu_);
    if (std::exchange(pressure_, pressure) == pressure) return;
    for (auto& [session, page] : pages_) {
      if (page->in_use()) page->SetPressure(pressure);
    }
  }

 private:
  Page* Find(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto it = pages_.find(session);
    return it == pages_.end() ? nullptr : it->second.get();
  }

  ub::Mutex mu_;
  absl::flat_hash_map<SessionId, std::unique_ptr<Page>> pages_ ABSL_GUARDED_BY(mu_);
  bool pressure_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t take_backs_ ABSL_GUARDED_BY(mu_) = 0;
};

absl::StatusOr<ub::UniqueFd> SharedLeasePages::OpenPage(SessionId session) {
  absl::StatusOr<ub::UniqueFd> own = MakeMemfd();
  if (!own.ok()) return own.status();
  void* memory = ::mmap(nullptr, sizeof(LeasePage), PROT_READ | PROT_WRITE, MAP_SHARED, own->get(), 0);
  if (memory == MAP_FAILED) return ub::ErrnoError(errno, "mapping a lease page");
  MappedPage mapped(static_cast<LeasePage*>(memory));
  mapped->header.magic = ub::wire::kLeasePageMagic;
  mapped->header.word_count = ub::wire::kWordsPerSession;
  // A description of its own for the client: flags and offset are not shared.
  ub::UniqueFd theirs(::open(absl::StrCat("/proc/self/fd/", own->get()).c_str(), O_RDWR | O_CLOEXEC));
  if (!theirs.valid()) return ub::ErrnoError(errno, "opening a lease page for its client");
  ub::MutexLock lock(&mu_);
  pages_[session] = std::make_unique<Page>(std::move(mapped));
  return theirs;
}

void SharedLeasePages::ClosePage(SessionId session) {
  std::unique_ptr<Page> gone;  // unmapped after the lock is free; nobody can reach it any more then
  ub::MutexLock lock(&mu_);
  auto it = pages_.find(session);
  if (it == pages_.end()) return;
  take_backs_ = SaturatingAdd(take_backs_, it->second->NewTakeBacks());
  gone = std::move(it->second);
  pages_.erase(it);
}

uint64_t SharedLeasePages::TakeBacks() {
  ub::MutexLock lock(&mu_);
  for (auto& [session, page] : pages_) take_backs_ = SaturatingAdd(take_backs_, page->NewTakeBacks());
  return take_backs_;
}

}  // namespace

std::unique_ptr<LeasePages> LeasePages::Create() { return std::make_unique<SharedLeasePages>(); }

}  // namespace ubd
