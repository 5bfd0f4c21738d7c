// The data path behind one door: queues, files, paths and what is in flight. Each lane is a thread with an io_uring of
// its own:
//
//   queues of sessions --> lane 0..N-1: take, check, choose the path, post, complete   (files on local devices)
//                            |  ^
//                            |  +-- results
//                            +--> slow lane: files on devices that may hang for long; a ring of its own, so that stuck
//                            |    I/O holds no recycled memory and no other tenant
//                            +--> copy lane: memory to memory, in pieces
//
// A lane polls its queues while there is traffic, then sleeps in epoll until an eventfd, a completion or a deadline
// wakes it. Uids share a lane by deficit round robin in bytes; one session has at most so many transfers in flight.
// Whatever happens to a session, a block is reusable only after the device's completion (RangePin).
//
// All functions are thread-safe. Lock order: the engine calls the Broker and Memory with none of its own locks held.
#ifndef UBD_ENGINE_ENGINE_H_
#define UBD_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/broker.h"
#include "daemon/engine/file_target.h"
#include "daemon/memory/memory.h"
#include "proto/wire/queue_layout.h"

namespace ubd {

struct EngineOptions {
  uint32_t threads = 1;
  std::vector<uint32_t> cpus;  // in turn; empty: anywhere
  int nice = 0;
  absl::Duration spin = absl::Microseconds(20);
  absl::Duration client_spin = absl::Microseconds(20);
  Demand register_blocks = Demand::kIfPossible;
  uint32_t depth = 128;
  Bytes chunk = ub::MiB(1);
  uint32_t max_queues_per_session = 64;
  uint32_t max_files_per_session = 256;
  uint32_t max_in_flight_per_session = 1024;
  FileRules files;
  ub::wire::PathPolicy policy = ub::wire::PathPolicy::kPreferDirect;
  Bytes min_direct_storage = ub::KiB(256);
  Bytes min_direct_network = ub::KiB(64);
};

struct QueueRequest {
  SessionId session;
  uint32_t sq_entries = 0;
  uint32_t cq_entries = 0;
  ub::wire::PathPolicy policy = ub::wire::PathPolicy::kDefault;
};

struct OpenedQueue {
  uint32_t id = 0;  // unique within the session, from 1
  ub::wire::QueueLayout layout;
  ub::UniqueFd memory;  // for the client
  ub::UniqueFd event;
};

struct QueueListing {
  SessionId session;
  uint32_t id = 0;
  std::string state;
  ub::wire::PathPolicy policy = ub::wire::PathPolicy::kDefault;
  uint32_t depth = 0;
  uint64_t waiting = 0, in_flight = 0, unread = 0;
  std::optional<absl::Duration> oldest;
  uint64_t submitted = 0, completed = 0, failed = 0, bytes = 0;
  uint64_t polls = 0, empty_polls = 0, sleeps = 0;
};

struct PathCounter {
  ub::wire::Path path;
  ub::wire::PathReason reason;
  ub::wire::MemoryKind from, to;
  uint64_t transfers = 0, bytes = 0, failed = 0;
};

struct PathStatus {
  ub::wire::PathPolicy policy;
  Bytes min_direct_storage;
  Bytes min_direct_network;
  std::string file_engine;  // "io_uring", or why there is none
  bool registered = false;  // every backing, on every ring
  std::string registration;
  std::vector<PathCounter> counts;  // those that are not 0
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Makes the rings and registers every backing with them. Before Memory::Start. `broker` and `memory` must outlive it.
  // Where registration fails `memory` is stopped: the boot is over.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options, Memory& memory);
  // Starts the lanes.
  virtual void Start(Broker& broker) = 0;
  // Takes nothing more and answers all that waits with STOPPING; returns when nothing is in flight, or after `grace`
  // with what still is (it keeps its memory out of use; the process may end).
  virtual uint64_t Stop(absl::Duration grace) = 0;

  // --- sessions. The session must be open at the Broker.
  virtual void OpenSession(SessionId session, Uid uid, int32_t pid) = 0;
  // Closes its queues and files. Never waits: what is in flight drains.
  virtual void CloseSession(SessionId session) = 0;

  // RESOURCE_EXHAUSTED/TOO_MANY_QUEUES, INVALID_ARGUMENT for sizes that cannot be.
  virtual absl::StatusOr<OpenedQueue> OpenQueue(const QueueRequest& request) = 0;
  virtual absl::Status CloseQueue(SessionId session, uint32_t queue) = 0;
  // May take as long as the file system does: not for the event loop's thread. The handle is 0 for an untrusted file.
  struct OpenedFile {
    uint32_t handle = 0;
    FileFacts facts;
  };
  virtual absl::StatusOr<OpenedFile> OpenFile(SessionId session, ub::UniqueFd file) = 0;
  virtual absl::Status CloseFile(SessionId session, uint32_t handle) = 0;

  virtual void SetPolicy(ub::wire::PathPolicy policy) = 0;
  // For transfers that are taken from now on.
  virtual void SetMinDirect(Bytes storage, Bytes network) = 0;
  virtual PathStatus Paths() const = 0;
  virtual std::vector<QueueListing> Queues() const = 0;
  // As it was made.
  virtual const EngineOptions& options() const = 0;
};

}  // namespace ubd

#endif  // UBD_ENGINE_ENGINE_H_
