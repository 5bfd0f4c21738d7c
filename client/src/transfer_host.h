// What queues and files need of their session. Thread-safe.
#ifndef UB_SRC_TRANSFER_HOST_H_
#define UB_SRC_TRANSFER_HOST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/src/lease_impl.h"
#include "client/src/mono_time.h"
#include "client/src/queue_ring_client.h"
#include "proto/wire/queue_layout.h"
#include "proto/wire/unique_fd.h"
#include "ub/queue.h"

namespace ub {

class QueueImpl;

struct QueueParts {
  QueueShape shape;
  std::unique_ptr<QueueRingClient> ring;
  Bytes batch_bytes;  // the daemon's advice for ub::Batcher on files
};

// The daemon's word on a file.
struct FileFacts {
  uint32_t handle = 0;  // 0: libub does the I/O
  bool readable = false;
  bool writable = false;
  bool direct = false;
  wire::PathReason why_not = wire::PathReason::kNone;
  Bytes offset_align;
  std::string file_system;
  Bytes size;
  wire::PathPolicy node_policy = wire::PathPolicy::kDefault;
};

class TransferHost {
 public:
  virtual ~TransferHost() = default;

  virtual absl::StatusOr<QueueParts> OpenQueue(const QueueOptions& options, Deadline deadline) = 0;
  // Takes the queue in: it goes on until nothing is in flight, then it is closed. Not waited for.
  virtual void CloseQueue(std::unique_ptr<QueueImpl> queue) = 0;
  // `fd` stays the caller's.
  virtual absl::StatusOr<FileFacts> OpenFile(int fd, Deadline deadline) = 0;
  virtual void CloseFile(uint32_t handle) = 0;

  // Rings that must be told of the session's end: QueueRingClient::End.
  virtual void AddRing(QueueRingClient* ring) = 0;
  virtual void RemoveRing(QueueRingClient* ring) = 0;
  // Leases of this session have this host.
  virtual const LeaseHost* lease_host() const = 0;
};

}  // namespace ub

#endif  // UB_SRC_TRANSFER_HOST_H_
