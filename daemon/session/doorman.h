// Receives what clients send on their lifelines, in a process of its own. A descriptor of a stranger may be anything,
// and the only way to be rid of it is close(): a FUSE server that never answers keeps whoever closes for ever, beyond
// SIGKILL, and a socket may linger. So a small process takes the packets and hands on what can be closed without
// waiting; the rest it names, and closes by its own end: the next packet finds a fresh process. A user whose
// descriptors hold up too many such ends has none taken any more until they are over.
//
//   daemon --Ask--> receiver (receives, judges, answers) --retires after a bad descriptor--> keeper (makes the next)
//
// Loop thread only.
#ifndef UBD_SESSION_DOORMAN_H_
#define UBD_SESSION_DOORMAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/requests.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// What a descriptor is, told without asking its file system.
struct Verdict {
  enum class Kind : uint8_t { kHarmless, kUntrusted, kNoFile };
  Kind kind = Kind::kNoFile;
  std::string file_system;  // kUntrusted; may be unknown
};
// `pid`: whose it is (0: unknown). Runs in the other process.
using OfferJudge = std::function<Verdict(int fd, int32_t pid)>;

class Doorman {
 public:
  // One packet of a lifeline.
  struct Arrival {
    uint64_t tag = 0;
    int error = 0;  // errno of the receiving; EAGAIN: there was nothing
    std::vector<std::byte> bytes;
    uint32_t fds = 0;        // that came with it
    bool truncated = false;  // some could not be taken, or not be handed on
    Verdict verdict;         // where one came
    ub::UniqueFd fd;         // kHarmless
  };

  // Makes the process: before there are other threads, memory or sockets that it would inherit. It ends with this one.
  static absl::StatusOr<std::unique_ptr<Doorman>> Start(const OfferJudge& judge);
  ~Doorman();

  // Asks for the next packet of `lifeline`, which is `of`'s. False: too many are asked for already; try again after an
  // answer.
  bool Ask(uint64_t tag, int lifeline, const SessionFacts& of);
  // The next answer. UNAVAILABLE: none now; ABORTED: the process has gone, and none will come.
  absl::StatusOr<Arrival> Next();
  // Questions without an answer so far.
  size_t asked() const { return asked_; }
  // Readable when there is an answer.
  int fd() const { return socket_.get(); }

 private:
  Doorman(ub::UniqueFd socket, int keeper) : socket_(std::move(socket)), keeper_(keeper) {}
  ub::UniqueFd socket_;
  int keeper_;
  size_t asked_ = 0;
};

}  // namespace ubd

#endif  // UBD_SESSION_DOORMAN_H_
