// One stream of `verify`: its own file without a name, queue and two blocks. A round writes what its seed says from one
// block to the file, reads it back into the other, and looks at every byte of both and of the file. One thread at a
// time.
#ifndef UB_UBCTL_VERIFY_STREAM_H_
#define UB_UBCTL_VERIFY_STREAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/load/result.h"
#include "client/ubctl/verify/plan.h"
#include "proto/wire/unique_fd.h"
#include "ub/client.h"
#include "ub/file.h"
#include "ub/queue.h"

namespace ub::ctl {

struct StreamOutcome {
  PathTally written;
  PathTally read;
  std::string fault;        // the first wrong byte or attestation, or ""
  std::string cached_read;  // why reads may have come from the page cache, or ""
};

class VerifyStream {
 public:
  struct Options {
    std::string directory;
    std::string pool;
    uint64_t number = 0;
    absl::Duration wait;  // for memory and the daemon
  };
  static absl::StatusOr<std::unique_ptr<VerifyStream>> Open(Client& client, const Options& options);

  // A transfer that fails is the error; bytes that are wrong are a fault in the outcome.
  absl::StatusOr<StreamOutcome> Round(uint64_t seed);
  const File& file() const { return file_; }

 private:
  VerifyStream() = default;
  void FillMemory(const StreamPlan& plan);
  absl::Status FillFile(const StreamPlan& plan);
  absl::Status Transfer(const StreamPlan& plan, bool write, PathTally& paths, std::string& fault);
  absl::Status Sync();
  std::string CheckMemory(const StreamPlan& plan) const;
  absl::StatusOr<std::string> CheckFile(const StreamPlan& plan) const;

  uint64_t number_ = 0;
  absl::Duration patience_;
  UniqueFd fd_;
  File file_;
  std::unique_ptr<Queue> queue_;
  Bytes memory_;
  Lease source_;
  Lease target_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_VERIFY_STREAM_H_
