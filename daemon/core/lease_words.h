// The lease words of all sessions, as the Broker sees them (proto/wire/lease_word.h has the protocol). Implemented by
// daemon/session over shared pages, faked in unit tests. Called under the Broker's lock: returns at once.
#ifndef UBD_CORE_LEASE_WORDS_H_
#define UBD_CORE_LEASE_WORDS_H_

#include <cstdint>
#include <optional>

#include "daemon/core/block.h"

namespace ubd {

class LeaseWords {
 public:
  virtual ~LeaseWords() = default;
  // A word of the session's page, set to BUSY for `generation`; none when the page is full.
  virtual std::optional<uint32_t> Assign(SessionId session, Generation generation) = 0;
  // The lease ended: the word becomes RECALLED for a lingering client, and free for the next lease.
  virtual void Drop(SessionId session, uint32_t word, Generation generation) = 0;
  // True: the client had it idle and can no longer take it back.
  virtual bool TryRecall(SessionId session, uint32_t word, Generation generation) = 0;
  // A hint for listings.
  virtual bool IsIdle(SessionId session, uint32_t word, Generation generation) = 0;
  // Tells all clients whether somebody waits for memory.
  virtual void SetPressure(bool pressure) = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_LEASE_WORDS_H_
