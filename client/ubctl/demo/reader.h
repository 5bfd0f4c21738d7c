// The file of the demo into leases, through a queue: reads begun ahead, taken in order. Not thread-safe.
#ifndef UB_UBCTL_DEMO_READER_H_
#define UB_UBCTL_DEMO_READER_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/demo/source_file.h"
#include "client/ubctl/load/result.h"
#include "ub/client.h"
#include "ub/file.h"
#include "ub/queue.h"

namespace ub::ctl {

class Reader {
 public:
  // A lease and the bytes of the file in it.
  struct Chunk {
    Lease lease;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // Nothing is opened for an empty file: there is nothing to read. `patience`: for the daemon's answers.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(Client& client, const SourceFile& source,
                                                      absl::Duration patience);

  // Where the next read begins; at the file's size there is none.
  uint64_t position() const { return position_; }
  size_t reading() const { return chunks_.size(); }
  // Begins to read the next `bytes`, which the file has, into `lease`.
  absl::Status Begin(Lease lease, uint64_t bytes);
  // Waits for the oldest read. ABORTED when the file is not as long as it was.
  absl::StatusOr<Chunk> Take();

  const PathTally& paths() const { return paths_; }
  bool served_locally() const { return file_.valid() && file_.served_locally(); }

 private:
  struct Reading {
    Chunk chunk;
    uint64_t tag = 0;
    bool done = false;
    absl::Status status;
    uint64_t got = 0;
  };
  Reader(const SourceFile& source, absl::Duration patience) : source_(source), patience_(patience) {}
  absl::Status Collect();

  const SourceFile& source_;
  absl::Duration patience_;
  File file_;
  std::unique_ptr<Queue> queue_;
  std::deque<Reading> chunks_;
  uint64_t position_ = 0;
  uint64_t next_tag_ = 0;
  PathTally paths_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_READER_H_
