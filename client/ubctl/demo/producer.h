// The demo's first process: leases, reads into the leases, shares, takes back, and keeps several chunks in flight. Not
// thread-safe.
#ifndef UB_UBCTL_DEMO_PRODUCER_H_
#define UB_UBCTL_DEMO_PRODUCER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ubctl/child.h"
#include "client/ubctl/demo/message.h"
#include "client/ubctl/demo/reader.h"
#include "client/ubctl/demo/source_file.h"
#include "client/ubctl/report.pb.h"
#include "ub/client.h"

namespace ub::ctl {

struct ProducerOptions {
  std::string pool;
  Bytes chunk;             // 0: one block
  absl::Duration timeout;  // how long to wait for memory that others hold, and for the consumer's next word
};

class Producer {
 public:
  Producer(Client& client, Child& consumer, const SourceFile& file, ProducerOptions options)
      : client_(client), consumer_(consumer), file_(file), options_(std::move(options)) {}

  // Passes the whole file through leases; fills in the report's figures and the consumer's hash.
  absl::Status Run(DemoReport& report);

 private:
  struct InFlight {
    uint64_t sequence;
    Lease lease;
  };

  // Begins reads until enough are under way, or memory is short.
  absl::Status ReadAhead();
  // Waits for the oldest read and hands its chunk to the consumer.
  absl::Status ShareOldest();
  // An empty one: memory is short, and reads under way must go on first.
  absl::StatusOr<Lease> TakeLease();
  absl::StatusOr<Lease> Acquire(absl::Duration wait);
  // Takes back the oldest chunk in flight; waits for it.
  absl::Status AwaitDone();
  // Takes back every chunk that the consumer has already finished.
  absl::Status CollectDone();
  absl::Status Retire(const DemoMessage& message);
  absl::Status Result(DemoReport& report);
  void ReportPaths(DemoReport& report) const;
  absl::StatusOr<DemoMessage> Hear();
  // What became of a consumer that does not talk any more.
  absl::Status ConsumerGone(const absl::Status& status);

  Client& client_;
  Child& consumer_;
  const SourceFile& file_;
  ProducerOptions options_;
  std::unique_ptr<Reader> reader_;
  std::deque<InFlight> in_flight_;
  uint64_t sent_chunks_ = 0;
  uint64_t leases_ = 0;
  size_t most_in_flight_ = 0;
  bool said_busy_ = false;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_PRODUCER_H_
