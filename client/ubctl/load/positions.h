// Where in a file the next chunk is read: in order and round again, or at random. Shared by all ways of reading, so
// that they read the same. Not thread-safe.
#ifndef UB_UBCTL_LOAD_POSITIONS_H_
#define UB_UBCTL_LOAD_POSITIONS_H_

#include <cstdint>

#include "client/ubctl/seed.h"

namespace ub::ctl {

class Positions {
 public:
  // `chunks`: whole chunks that the file has, at least 1.
  Positions(uint64_t chunk, uint64_t chunks, bool random, uint64_t seed)
      : chunk_(chunk), chunks_(chunks), random_(random), draw_(seed) {}
  uint64_t Next() { return chunk_ * (random_ ? draw_.Below(chunks_) : next_++ % chunks_); }

 private:
  uint64_t chunk_;
  uint64_t chunks_;
  bool random_;
  Draw draw_;
  uint64_t next_ = 0;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_POSITIONS_H_
