// The client's end of the lifeline (proto/wire/lifeline.h): the handshake, and the socket while the session lives.
// Closing it ends the session. Thread-safe after Connect.
#ifndef UB_SRC_LIFELINE_CLIENT_H_
#define UB_SRC_LIFELINE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/src/mono_time.h"
#include "client/src/word_page.h"
#include "proto/wire/unique_fd.h"
#include "proto/wire/units.h"

namespace ub {

class LifelineClient {
 public:
  // Errors as ConnectSocket, and: NOT_ANSWERING (no Welcome in time), VERSION_MISMATCH (both versions and who must
  // restart), what the daemon's Refuse says (TOO_MANY_SESSIONS, STOPPING, ...), MALFORMED_FRAME.
  static absl::StatusOr<std::unique_ptr<LifelineClient>> Connect(const std::string& runtime_dir,
                                                                 const std::string& name, Deadline deadline);
  ~LifelineClient();
  LifelineClient(const LifelineClient&) = delete;
  LifelineClient& operator=(const LifelineClient&) = delete;

  int fd() const { return fd_.get(); }
  SessionId session() const { return session_; }
  // The secret for the RPCs: 32 hex digits.
  const std::string& token() const { return token_; }
  const WordPage& words() const { return words_; }

 private:
  LifelineClient() = default;
  absl::Status SendHello(const std::string& name);
  absl::Status ReadWelcome(Deadline deadline);

  UniqueFd fd_;
  SessionId session_;
  std::string token_;
  WordPage words_;
};

}  // namespace ub

#endif  // UB_SRC_LIFELINE_CLIENT_H_
