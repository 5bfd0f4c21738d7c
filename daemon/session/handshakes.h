// Lifelines that are not sessions yet: accepted, identified by the kernel, waiting for their Hello. The remote is
// assumed hostile: it may say nothing, say garbage, send descriptors, or come by the thousand. So their number is
// bounded, per uid and in all, and each has a deadline; when a uid has too many, its oldest one goes, for an honest
// client speaks at once. Loop thread only.
#ifndef UBD_SESSION_HANDSHAKES_H_
#define UBD_SESSION_HANDSHAKES_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/session/event_loop.h"
#include "daemon/session/session.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class Handshakes {
 public:
  static constexpr size_t kMostPerUid = 256;
  static constexpr size_t kMost = 1024;

  // A client that has said a proper Hello: takes the lifeline over.
  using OnHello = std::function<void(ub::UniqueFd lifeline, PeerIdentity identity, const ub::wire::Hello& hello)>;

  Handshakes(EventLoop& loop, OnHello on_hello) : loop_(loop), on_hello_(std::move(on_hello)) {}
  ~Handshakes() { RefuseAll(absl::OkStatus()); }

  void Begin(ub::UniqueFd lifeline, absl::Duration timeout);
  // OK: silently.
  void RefuseAll(const absl::Status& why);
  size_t pending() const { return pending_.size(); }

 private:
  struct Pending {
    ub::UniqueFd lifeline;
    PeerIdentity identity;
    EventLoop::WatchId watch = 0;
    EventLoop::TimerId timer = 0;
  };
  void MakeRoom(Uid uid);
  void OnTimeout(uint64_t id);
  void OnReadable(uint64_t id);
  // Checks the packet; keeps the client's pidfd where the kernel gave none.
  absl::StatusOr<ub::wire::Hello> Check(Pending& pending, ub::wire::Packet packet);
  // Out of the books; the lifeline is the caller's.
  Pending Take(uint64_t id);
  void Refuse(uint64_t id, const absl::Status& why);

  EventLoop& loop_;
  const OnHello on_hello_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Pending> pending_;  // in order of age
  absl::flat_hash_map<Uid, size_t> of_uid_;
};

}  // namespace ubd

#endif  // UBD_SESSION_HANDSHAKES_H_
