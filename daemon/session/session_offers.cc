// What a client may send after Hello: Offer frames, one descriptor each. Anything else ends its session. A few frames a
// turn, so that a client that floods its lifeline slows down itself.
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/session/session_server.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

constexpr int kFramesPerTurn = 16;

absl::Status NoDescriptorHere() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit,
                       "ubd had no file descriptor left for the one offered: offer it again later, and raise "
                       "LimitNOFILE of the unit");
}

}  // namespace

// False: the client broke the protocol.
bool LoopSessionServer::TakePacket(LifelineSession& session, ub::wire::Packet packet) {
  absl::StatusOr<ub::wire::Frame> frame = ub::wire::ParseFrame(packet.bytes);
  if (!frame.ok()) return false;
  const auto* offer = std::get_if<ub::wire::Offer>(&*frame);
  if (offer == nullptr) return false;
  // Cut short for want of room here, so how many there were is unknown.
  if (packet.fds_truncated) return session.offers().Put(offer->offer, {ub::UniqueFd(), NoDescriptorHere});
  if (packet.fds.size() != 1) return false;
  return session.offers().Put(offer->offer, {std::move(packet.fds[0]), nullptr});
}

void LoopSessionServer::ReadOffers(const std::shared_ptr<LifelineSession>& session) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    absl::StatusOr<ub::wire::Packet> packet = session->courier()->Receive();
    if (!packet.ok() && ub::DetailOf(packet.status(), "errno") == absl::StrCat(EAGAIN)) return;
    // Empty: it hung up, of which the next event tells.
    if (packet.ok() && packet->bytes.empty() && packet->fds.empty()) return;
    if (!packet.ok() || !TakePacket(*session, *std::move(packet)))
      return EndSession(session->facts().id, SessionEnd::kProtocol);
  }
  ReadLater(session);
}

// The watch may be edge-triggered by now (Courier::WatchReading), so it does not tell of what is left.
void LoopSessionServer::ReadLater(const std::shared_ptr<LifelineSession>& session) {
  if (std::exchange(session->reading_posted, true)) return;
  loop_.Post([this, id = session->facts().id] {
    std::shared_ptr<LifelineSession> live = table_->FindLive(id);
    if (live == nullptr) return;
    live->reading_posted = false;
    ReadOffers(live);
  });
}

}  // namespace ubd
