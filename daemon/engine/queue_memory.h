// The memory and the eventfd of one queue: made by the daemon, mapped there, and handed to the client as descriptors of
// its own. The daemon never reads the eventfd (the client could have made that block); it only watches it,
// edge-triggered.
#ifndef UBD_ENGINE_QUEUE_MEMORY_H_
#define UBD_ENGINE_QUEUE_MEMORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/wire/queue_layout.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class QueueMemory {
 public:
  static absl::StatusOr<std::unique_ptr<QueueMemory>> Create(ub::wire::QueueLayout layout);
  ~QueueMemory();
  QueueMemory(const QueueMemory&) = delete;
  QueueMemory& operator=(const QueueMemory&) = delete;

  void* data() const { return data_; }
  const ub::wire::QueueLayout& layout() const { return layout_; }
  int event_fd() const { return event_.get(); }
  // The client's description of the memory, and of the eventfd (a duplicate: an eventfd cannot be reopened). Once.
  ub::UniqueFd TakeClientMemory() { return std::move(client_memory_); }
  ub::UniqueFd TakeClientEvent() { return std::move(client_event_); }

 private:
  QueueMemory() = default;
  ub::wire::QueueLayout layout_;
  void* data_ = nullptr;
  ub::UniqueFd event_;
  ub::UniqueFd client_memory_;
  ub::UniqueFd client_event_;
};

}  // namespace ubd

#endif  // UBD_ENGINE_QUEUE_MEMORY_H_
