// What a client may send after Hello: Offer frames, one descriptor each. Anything else ends its session. The doorman
// receives them, one packet of a session at a time, so that a client that floods its lifeline waits for itself.
#include <sys/epoll.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/session/session_server.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

constexpr int kFramesPerTurn = 16;
constexpr absl::Duration kAskAgain = absl::Milliseconds(20);

absl::Status NoDescriptorHere() {
  return ub::MakeError(
      absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit,
      "ubd could not take the descriptor that was offered: offer it again later; if that does not help, "
      "raise LimitNOFILE of the unit, and look for file systems that do not answer");
}

absl::Status NoFile() {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadFile,
                       "neither a regular file nor a block device: open one of these and offer it");
}

absl::Status Untrusted(const std::string& file_system) {
  return ub::MakeError(absl::StatusCode::kFailedPrecondition, ub::Reason::kBadFile,
                       absl::StrCat("ubd does no I/O on file system \"", file_system,
                                    "\", which may never answer: engine { file_system } of the config names those that "
                                    "it trusts"),
                       {{"file_system", file_system}});
}

OfferBox::Offered OfferedBy(Doorman::Arrival& arrival) {
  if (arrival.truncated) return {ub::UniqueFd(), NoDescriptorHere};
  switch (arrival.verdict.kind) {
    case Verdict::Kind::kHarmless:
      return {std::move(arrival.fd), nullptr};
    case Verdict::Kind::kUntrusted:
      return {ub::UniqueFd(), [name = arrival.verdict.file_system] { return Untrusted(name); }};
    default:
      return {ub::UniqueFd(), NoFile};
  }
}

// As the doorman would, but here; without descriptors where it is out of service.
Doorman::Arrival ReceiveHere(Courier& courier, bool with_fds) {
  Doorman::Arrival arrival;
  absl::StatusOr<ub::wire::Packet> packet = courier.Receive(with_fds);
  if (!packet.ok()) {
    int number = 0;
    const bool from_kernel = absl::SimpleAtoi(ub::DetailOf(packet.status(), "errno").value_or(""), &number);
    arrival.error = from_kernel ? number : EPROTO;
    return arrival;
  }
  arrival.bytes = std::move(packet->bytes);
  arrival.fds = static_cast<uint32_t>(packet->fds.size());
  arrival.truncated = packet->fds_truncated;
  arrival.verdict.kind = Verdict::Kind::kHarmless;
  if (packet->fds.size() == 1) arrival.fd = std::move(packet->fds[0]);
  return arrival;
}

}  // namespace

// False: the client broke the protocol.
bool LoopSessionServer::TakePacket(LifelineSession& session, Doorman::Arrival arrival) {
  absl::StatusOr<ub::wire::Frame> frame = ub::wire::ParseFrame(arrival.bytes);
  if (!frame.ok()) return false;
  const auto* offer = std::get_if<ub::wire::Offer>(&*frame);
  // Cut short for want of room here, how many there were is unknown.
  if (offer == nullptr || (!arrival.truncated && arrival.fds != 1)) return false;
  return session.offers().Put(offer->offer, OfferedBy(arrival));
}

void LoopSessionServer::ReadOffers(const std::shared_ptr<LifelineSession>& session) {
  if (doorman_ != nullptr) return AskDoorman(session);
  for (int i = 0; i < kFramesPerTurn; ++i) {
    Doorman::Arrival arrival = ReceiveHere(*session->courier(), !doorman_lost_);
    // Nothing, or it hung up, of which the next event tells.
    if (arrival.error == EAGAIN || (arrival.error == 0 && arrival.bytes.empty() && arrival.fds == 0)) return;
    if (arrival.error != 0 || !TakePacket(*session, std::move(arrival)))
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

absl::Status LoopSessionServer::WatchDoorman() {
  if (doorman_ == nullptr) return absl::OkStatus();
  absl::StatusOr<EventLoop::WatchId> watch = loop_.Watch(doorman_->fd(), EPOLLIN, [this](uint32_t) { OnDoorman(); });
  if (!watch.ok()) return watch.status();
  doorman_watch_ = *watch;
  return absl::OkStatus();
}

// What it sends meanwhile waits in its lifeline.
void LoopSessionServer::AskDoorman(const std::shared_ptr<LifelineSession>& session) {
  if (std::exchange(session->asked, true)) return;
  session->courier()->ListenTo(false);
  to_ask_.push_back(session->facts().id);
  OnDoorman();
}

void LoopSessionServer::OnDoorman() {
  for (int i = 0; doorman_ != nullptr && i < kFramesPerTurn; ++i) {
    absl::StatusOr<Doorman::Arrival> arrival = doorman_->Next();
    if (absl::IsAborted(arrival.status())) return DoormanGone();
    if (!arrival.ok()) break;
    std::shared_ptr<LifelineSession> session = table_->FindLive(SessionId(arrival->tag));
    if (session == nullptr) continue;
    session->asked = false;
    const bool nothing =
        arrival->error == EAGAIN || (arrival->error == 0 && arrival->bytes.empty() && arrival->fds == 0);
    if (!nothing && (arrival->error != 0 || !TakePacket(*session, *std::move(arrival)))) {
      EndSession(session->facts().id, SessionEnd::kProtocol);
    } else {
      session->courier()->ListenTo(true);
    }
  }
  while (doorman_ != nullptr && !to_ask_.empty()) {
    std::shared_ptr<LifelineSession> session = table_->FindLive(to_ask_.front());
    const bool asked = session == nullptr || session->courier()->Lend([&](int lifeline) {
      return lifeline < 0 || doorman_->Ask(session->facts().id.value(), lifeline, session->facts().pid);
    });
    if (!asked) return AskLater();
    to_ask_.pop_front();
  }
}

// The next answer makes room; where none is on its way (the kernel was short of something), time does.
void LoopSessionServer::AskLater() {
  if (doorman_->asked() > 0 || std::exchange(asking_later_, true)) return;
  loop_.RunAfter(kAskAgain, [this] {
    asking_later_ = false;
    OnDoorman();
  });
}

// Somebody killed it. Sessions live on; what they offer is refused from now on.
void LoopSessionServer::DoormanGone() {
  loop_.Unwatch(std::exchange(doorman_watch_, 0));
  doorman_ = nullptr;
  doorman_lost_ = true;
  to_ask_.clear();
  for (SessionId id : table_->Ids()) {
    std::shared_ptr<LifelineSession> session = table_->FindLive(id);
    if (session == nullptr || !std::exchange(session->asked, false)) continue;
    session->courier()->ListenTo(true);
  }
}

}  // namespace ubd
