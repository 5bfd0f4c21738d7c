// An io_uring with every backing as a fixed buffer. One thread posts and reaps (its lane's); Register, Unregister,
// Registered and RegistrationText may be called from any thread. Depth is bounded here: Room() says how many pieces
// more may be posted. Whoever destroys a ring with pieces in flight must keep their memory: the kernel ends them later.
#ifndef UBD_ENGINE_FILE_RING_H_
#define UBD_ENGINE_FILE_RING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/memory/memory.h"

namespace ubd {

struct FileRingOptions {
  uint32_t depth = 128;
  uint32_t slots = 0;  // Memory::Slots()
  Demand registration = Demand::kIfPossible;
};

// One piece of one transfer, as the device sees it.
struct FilePiece {
  enum class Kind : uint8_t { kRead, kWrite, kFsync };
  Kind kind;
  int fd = -1;
  void* address = nullptr;
  uint32_t length = 0;
  uint64_t offset = 0;  // in the file
  uint32_t slot = 0;
  uint64_t tag = 0;  // comes back; never 0
};

struct FileResult {
  uint64_t tag = 0;
  int32_t result = 0;  // bytes, or -errno
};

class FileRing : public Registrar {
 public:
  // UNAVAILABLE where the kernel or its settings allow no io_uring; the text says why and how to allow it.
  static absl::StatusOr<std::unique_ptr<FileRing>> Create(const FileRingOptions& options);

  // Registrar. With kIfPossible a refusal (memlock of an ordinary user) is remembered, said once, and is no error.
  absl::Status Register(uint32_t slot, void* address, Bytes bytes) override = 0;
  void Unregister(uint32_t slot) override = 0;
  // Pieces of this slot go by its fixed buffer.
  virtual bool Registered(uint32_t slot) const = 0;
  // "9 of 9 backings", "0 of 9 backings: why".
  virtual std::string RegistrationText() const = 0;

  virtual uint32_t Room() const = 0;
  virtual uint32_t in_flight() const = 0;
  // Queues a piece for the next Submit. Room() must not be 0. Returns whether it goes by a fixed buffer.
  virtual bool Post(const FilePiece& piece) = 0;
  // Asks the kernel, with the next Submit, to give up a piece; it still completes (-ECANCELED, or as it happened).
  virtual void Cancel(uint64_t tag) = 0;
  // One system call for all that was posted; none if nothing was. What the kernel does not take now (it is short of
  // memory) goes with the next Submit, and fd() is sure to become readable before that.
  virtual void Submit() = 0;
  // What is complete now, until nothing is left or `out` is full. No system call.
  virtual size_t Reap(absl::Span<FileResult> out) = 0;
  // Readable when something can be reaped. The kernel may end a wait for it with EINTR: reap then too.
  virtual int fd() const = 0;
};

}  // namespace ubd

#endif  // UBD_ENGINE_FILE_RING_H_
