#include "daemon/session/handshakes.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/session/peer_identity.h"
#include "daemon/session/refusal.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

absl::Status Malformed(const char* why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kMalformedFrame, why);
}

absl::Status TimedOut() {
  return ub::MakeError(absl::StatusCode::kDeadlineExceeded, ub::Reason::kWaitTimeout,
                       "no Hello came within the handshake timeout; connect anew and send it at once");
}

absl::Status TooMany() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManySessions,
                       "too many lifelines of this user were opened and said nothing; the oldest are closed");
}

}  // namespace

void Handshakes::Begin(ub::UniqueFd lifeline, absl::Duration timeout) {
  absl::StatusOr<PeerIdentity> identity = IdentifyPeer(lifeline.get());
  if (!identity.ok()) return SendRefuse(lifeline.get(), identity.status());
  MakeRoom(identity->uid);
  const uint64_t id = next_id_++;
  absl::StatusOr<EventLoop::WatchId> watch =
      loop_.Watch(lifeline.get(), EPOLLIN | EPOLLRDHUP, [this, id](uint32_t) { OnReadable(id); });
  if (!watch.ok()) return SendRefuse(lifeline.get(), watch.status());
  ++of_uid_[identity->uid];
  Pending& pending = pending_[id];
  pending.lifeline = std::move(lifeline);
  pending.identity = *std::move(identity);
  pending.watch = *watch;
  pending.timer = loop_.RunAfter(timeout, [this, id] { OnTimeout(id); });
}

void Handshakes::MakeRoom(Uid uid) {
  auto own = of_uid_.find(uid);
  if (own != of_uid_.end() && own->second >= kMostPerUid) {
    // Fall through to this uid's oldest.
  } else if (pending_.size() < kMost) {
    return;
  } else {
    uid = std::max_element(of_uid_.begin(), of_uid_.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
          })->first;
  }
  auto oldest = std::find_if(pending_.begin(), pending_.end(),
                             [uid](const auto& entry) { return entry.second.identity.uid == uid; });
  Refuse(oldest->first, TooMany());
}

// A daemon that stood still refuses nobody whose Hello came in time and only waits to be read.
void Handshakes::OnTimeout(uint64_t id) {
  OnReadable(id);
  if (pending_.contains(id)) Refuse(id, TimedOut());
}

void Handshakes::OnReadable(uint64_t id) {
  auto it = pending_.find(id);
  if (it == pending_.end()) return;
  // A descriptor is taken only from a client that the kernel could not name (its pidfd); another's might never close.
  const bool known = it->second.identity.pidfd.valid();
  const int lifeline = it->second.lifeline.get();
  absl::StatusOr<ub::wire::Packet> packet =
      known ? ub::wire::ReceiveBytes(lifeline) : ub::wire::ReceivePacket(lifeline);
  if (known && packet.ok()) packet->fds_truncated = false;
  if (!packet.ok()) {
    if (ub::DetailOf(packet.status(), "errno") == absl::StrCat(EAGAIN)) return;
    return Refuse(id, packet.status());
  }
  if (packet->bytes.empty() && packet->fds.empty()) {
    Take(id);  // it hung up
    return;
  }
  absl::StatusOr<ub::wire::Hello> hello = Check(it->second, *std::move(packet));
  if (!hello.ok()) return Refuse(id, hello.status());
  Pending pending = Take(id);
  on_hello_(std::move(pending.lifeline), std::move(pending.identity), *hello);
}

absl::StatusOr<ub::wire::Hello> Handshakes::Check(Pending& pending, ub::wire::Packet packet) {
  absl::StatusOr<ub::wire::Frame> frame = ub::wire::ParseFrame(packet.bytes);
  if (!frame.ok()) {
    uint32_t theirs = 0;
    if (absl::SimpleAtoi(ub::DetailOf(frame.status(), "theirs").value_or(""), &theirs)) return VersionRefusal(theirs);
    return frame.status();
  }
  const auto* hello = std::get_if<ub::wire::Hello>(&*frame);
  if (hello == nullptr) return Malformed("the first frame on a lifeline must be Hello");
  if (packet.fds.size() > 1) return Malformed("Hello carries more than one descriptor");
  // Room for one descriptor was missing here, not there.
  if (packet.fds_truncated) return NoRoomRefusal();
  if (packet.fds.size() == 1) {
    absl::Status added = AddClientPidfd(pending.identity, std::move(packet.fds[0]));
    if (!added.ok()) return added;
  }
  return *hello;
}

Handshakes::Pending Handshakes::Take(uint64_t id) {
  auto it = pending_.find(id);
  Pending pending = std::move(it->second);
  pending_.erase(it);
  loop_.Unwatch(pending.watch);
  loop_.Cancel(pending.timer);
  auto own = of_uid_.find(pending.identity.uid);
  if (--own->second == 0) of_uid_.erase(own);
  return pending;
}

void Handshakes::Refuse(uint64_t id, const absl::Status& why) {
  Pending pending = Take(id);
  if (!why.ok()) SendRefuse(pending.lifeline.get(), why);
}

void Handshakes::RefuseAll(const absl::Status& why) {
  while (!pending_.empty()) Refuse(pending_.begin()->first, why);
}

}  // namespace ubd
