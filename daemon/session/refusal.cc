#include "daemon/session/refusal.h"

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/clock.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"
#include "proto/wire/version.h"

namespace ubd {
namespace {

// An honest client has sent one Hello; a hostile one may be reset.
constexpr int kMostUnread = 8;
// Whoever comes how often, the log does not grow faster than this.
constexpr absl::Duration kBetweenLines = absl::Seconds(10);

class RefusalLog {
 public:
  void Add(int lifeline, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    uint64_t untold = 0;
    {
      ub::MutexLock lock(&mu_);
      const MonoTime now = SystemClock().Now();
      if (now < next_) {
        ++untold_;
        return;
      }
      next_ = now + kBetweenLines;
      untold = std::exchange(untold_, 0);
    }
    ucred peer = {};
    socklen_t size = sizeof(peer);
    const bool known = ::getsockopt(lifeline, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    LogWarn("refused a client", {{"uid", known ? absl::StrCat(peer.uid) : ""},
                                 {"pid", known ? absl::StrCat(peer.pid) : ""},
                                 {"reason", std::string(ub::ReasonName(ub::ReasonOf(why)))},
                                 {"why", std::string(why.message().data(), why.message().size())},
                                 {"others_before", untold > 0 ? absl::StrCat(untold) : ""}});
  }

 private:
  ub::Mutex mu_;
  MonoTime next_ ABSL_GUARDED_BY(mu_);
  uint64_t untold_ ABSL_GUARDED_BY(mu_) = 0;
};

void LogRefusal(int lifeline, const absl::Status& why) {
  static auto* log = new RefusalLog();
  log->Add(lifeline, why);
}

}  // namespace

void SendRefuse(int lifeline, const absl::Status& why) {
  LogRefusal(lifeline, why);
  auto frame = ub::wire::NewFrame<ub::wire::Refuse>();
  frame.code = static_cast<int32_t>(why.code());
  frame.daemon_protocol = ub::ProtocolVersion();
  ub::wire::SetText(frame.reason, ub::ReasonName(ub::ReasonOf(why)));
  ub::wire::SetText(frame.text, std::string_view(why.message().data(), why.message().size()));
  (void)ub::wire::SendPacket(lifeline, ub::wire::AsBytes(frame), {});
  // A socket that is closed with something unread resets its peer, which then reads ECONNRESET instead of the frame.
  // So: nothing more comes in, and what is there is thrown away (fds too, as there is no room for them).
  ::shutdown(lifeline, SHUT_RDWR);
  char ignored = 0;
  for (int i = 0; i<kMostUnread&& ::recv(lifeline, &ignored, 1, MSG_DONTWAIT)> 0; ++i) {
  }
}

absl::Status VersionRefusal(uint32_t theirs) {
  const uint32_t ours = ub::ProtocolVersion();
  std::string remedy = theirs > ours ? "the daemon is older: upgrade ubd and restart it (systemctl restart ubd)"
                                     : "the client is older: restart it with the libub of this ubd";
  return ub::MakeError(absl::StatusCode::kFailedPrecondition, ub::Reason::kVersionMismatch,
                       absl::StrCat("client speaks protocol ", theirs, ", daemon speaks ", ours, " (ubd ",
                                    std::string(ub::ReleaseVersion()), "); ", remedy),
                       {{"client", absl::StrCat(theirs)}, {"daemon", absl::StrCat(ours)}, {"remedy", remedy}});
}

absl::Status NoRoomRefusal() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit,
                       "the daemon has no file descriptor left for another client; raise LimitNOFILE of ubd");
}

absl::Status StoppingRefusal() {
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kStopping,
                       "ubd is stopping; connect again when it is back");
}

}  // namespace ubd
