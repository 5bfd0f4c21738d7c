// This session's page of lease words, shared with the daemon (proto/wire/lease_word.h has the protocol). The daemon may
// write to it at any time: every value is read once, then checked, then used. Thread-safe after Map.
#ifndef UB_SRC_WORD_PAGE_H_
#define UB_SRC_WORD_PAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/unique_fd.h"

namespace ub {

class WordPage {
 public:
  // Maps the page; refuses one that can shrink, has another size or another layout.
  static absl::StatusOr<WordPage> Map(UniqueFd fd, uint32_t word_count);
  WordPage() = default;
  WordPage(WordPage&& other) noexcept;
  WordPage& operator=(WordPage&& other) noexcept;
  ~WordPage();

  // Null when the index is out of range.
  wire::LeaseWord* word(uint32_t index) const { return index < word_count_ ? &page_->words[index] : nullptr; }
  // Somebody waits for memory. Ordered after an idled word.
  bool pressure() const { return page_->header.pressure.load(std::memory_order_seq_cst) != 0; }
  // Advisory, for the daemon's metrics.
  void CountTakeBack() const { page_->header.take_backs.fetch_add(1, std::memory_order_relaxed); }

 private:
  wire::LeasePage* page_ = nullptr;
  uint32_t word_count_ = 0;
};

// Client: BUSY to IDLE. False: the word is another lease's by now, so this lease has ended. (A plain store could hit
// that other lease.)
inline bool TryIdle(wire::LeaseWord& word, uint64_t generation) {
  uint64_t expected = wire::PackWord(wire::WordState::kBusy, generation);
  return word.word.compare_exchange_strong(expected, wire::PackWord(wire::WordState::kIdle, generation),
                                           std::memory_order_seq_cst);
}

}  // namespace ub

#endif  // UB_SRC_WORD_PAGE_H_
