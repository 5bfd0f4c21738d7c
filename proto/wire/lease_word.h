// Lease words: how a client takes a cached lease back, and how the daemon recalls it, without a call. One page per
// session, a sealed memfd that the daemon makes and both sides map. Every cacheable lease has one word in it: a state
// and the lease's generation.
//
//                 client: Idle()                     daemon: TryRecall()
//      BUSY  ------------------------->  IDLE  -------------------------->  RECALLED
//        ^  <-------------------------    |
//             client: TryTakeBack()       |  the daemon ends the lease; whatever the client writes later changes
//             nothing
//
// The word is a hint that the daemon may act on; the Broker's own record is what counts. A client may write anything
// here: it can only make its own lease be recalled, or refuse to be recalled while it holds it, which it may anyway.
// The generation guards against ABA: a word that was given to another lease never matches. Both sides read each word
// once.
//
// Pressure: the daemon sets `pressure` while somebody waits for memory. A client that idles a word reads it afterwards
// and, when set, takes the word back and releases properly. Idle stores and pressure loads (and the daemon's pressure
// stores and word loads) are sequentially consistent, so one of the two sides always sees the other.
#ifndef UB_WIRE_LEASE_WORD_H_
#define UB_WIRE_LEASE_WORD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ub::wire {

enum class WordState : uint8_t { kUnused = 0, kBusy = 1, kIdle = 2, kRecalled = 3 };

constexpr uint64_t PackWord(WordState state, uint64_t generation) {
  return generation << 8 | static_cast<uint64_t>(state);
}
constexpr WordState StateOfWord(uint64_t word) { return static_cast<WordState>(word & 0xff); }

// One cache line each, so that two leases of two threads do not share one.
struct alignas(64) LeaseWord {
  std::atomic<uint64_t> word;
  uint8_t unused[56];
};
static_assert(sizeof(LeaseWord) == 64);

struct alignas(64) LeasePageHeader {
  uint32_t magic;  // kLeasePageMagic
  uint32_t word_count;
  std::atomic<uint32_t> pressure;  // daemon writes: not 0 while somebody waits for memory
  std::atomic<uint32_t> unused;
  std::atomic<uint64_t> take_backs;  // client counts the grants it served itself; advisory
  uint8_t pad[40];
};
static_assert(sizeof(LeasePageHeader) == 64);

inline constexpr uint32_t kLeasePageMagic = 0x50575542;  // "BUWP"
inline constexpr uint32_t kWordsPerSession = 255;
inline constexpr size_t kLeasePageBytes = size_t{64} * (kWordsPerSession + 1);
static_assert(kLeasePageBytes == 16384);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct LeasePage {
  LeasePageHeader header;
  LeaseWord words[kWordsPerSession];
};
static_assert(sizeof(LeasePage) == kLeasePageBytes);

// Client: BUSY to IDLE. Afterwards read `pressure`.
inline void Idle(LeaseWord& word, uint64_t generation) {
  word.word.store(PackWord(WordState::kIdle, generation), std::memory_order_seq_cst);
}
// Client: IDLE to BUSY. False: it was recalled; unmap.
inline bool TryTakeBack(LeaseWord& word, uint64_t generation) {
  uint64_t expected = PackWord(WordState::kIdle, generation);
  return word.word.compare_exchange_strong(expected, PackWord(WordState::kBusy, generation), std::memory_order_seq_cst);
}
// Daemon: IDLE to RECALLED. False: the client uses it.
inline bool TryRecall(LeaseWord& word, uint64_t generation) {
  uint64_t expected = PackWord(WordState::kIdle, generation);
  return word.word.compare_exchange_strong(expected, PackWord(WordState::kRecalled, generation),
                                           std::memory_order_seq_cst);
}

}  // namespace ub::wire

#endif  // UB_WIRE_LEASE_WORD_H_
