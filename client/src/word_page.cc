#include "client/src/word_page.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "client/src/mapping.h"
#include "proto/wire/error.h"

namespace ub {

absl::StatusOr<WordPage> WordPage::Map(UniqueFd fd, uint32_t word_count) {
  if (absl::Status bad = CheckSealedMemfd(fd.get(), wire::kLeasePageBytes); !bad.ok()) return bad;
  void* at = ::mmap(nullptr, wire::kLeasePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (at == MAP_FAILED) return ErrnoError(errno, "mmap of the lease-word page");
  WordPage page;
  page.page_ = static_cast<wire::LeasePage*>(at);
  page.word_count_ = word_count;
  if (::madvise(at, wire::kLeasePageBytes, MADV_DONTFORK) != 0)
    return ErrnoError(errno, "madvise of the lease-word page");
  if (page.page_->header.magic != wire::kLeasePageMagic || word_count > wire::kWordsPerSession) {
    return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kMalformedFrame,
                     "the daemon's lease-word page has an unknown layout; are libub and ubd of one release?");
  }
  return page;
}

WordPage::WordPage(WordPage&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), word_count_(std::exchange(other.word_count_, 0)) {}

WordPage& WordPage::operator=(WordPage&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(word_count_, other.word_count_);
  return *this;
}

WordPage::~WordPage() {
  if (page_ != nullptr) ::munmap(page_, wire::kLeasePageBytes);
}

}  // namespace ub
