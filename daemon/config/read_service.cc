#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/config/read.h"
#include "daemon/telemetry/listen_address.h"

namespace ubd {
namespace {

// The mode of the sockets: octal, for owner and group.
void ReadMode(const std::string& text, const Section& socket, Config* config) {
  bool octal = (text.size() == 3 || (text.size() == 4 && text[0] == '0')) &&
               std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  if (!octal) {
    return socket.Fault("mode", absl::StrCat("mode \"", text, "\" is no octal file mode; write for example \"0660\""));
  }
  uint32_t mode = 0;
  for (char c : text) mode = mode * 8 + static_cast<uint32_t>(c - '0');
  if ((mode & 07) != 0) {
    return socket.Fault("mode", absl::StrCat("mode \"", text,
                                             "\" lets every user connect; write \"0660\" and put the users "
                                             "in the socket's group"));
  }
  if ((mode & 0600) != 0600) {
    return socket.Fault("mode", absl::StrCat("mode \"", text, "\" keeps the owner out; write \"0600\" or \"0660\""));
  }
  config->socket_mode = mode;
}

LogLevel LevelOf(ub::v1::LogConfig::Level level) {
  switch (level) {
    case ub::v1::LogConfig::DEBUG:
      return LogLevel::kDebug;
    case ub::v1::LogConfig::WARN:
      return LogLevel::kWarn;
    case ub::v1::LogConfig::ERROR:
      return LogLevel::kError;
    default:
      return LogLevel::kInfo;
  }
}

LogTarget TargetOf(ub::v1::LogConfig::Target target) {
  switch (target) {
    case ub::v1::LogConfig::STDERR:
      return LogTarget::kStderr;
    case ub::v1::LogConfig::JOURNALD:
      return LogTarget::kJournald;
    default:
      return LogTarget::kAuto;
  }
}

}  // namespace

void ReadSocket(const ub::v1::Config& from, const Section& root, Config* config) {
  if (!from.has_socket()) return;
  if (from.socket().has_mode()) ReadMode(from.socket().mode(), root.Inner("socket", from.socket()), config);
  config->socket_group = from.socket().group();
}

void ReadSession(const ub::v1::Config& from, const Section& root, Config* config) {
  if (!from.has_session()) return;
  Section session = root.Inner("session", from.session());
  config->max_sessions = session.Count("max_sessions", config->max_sessions);
  config->max_sessions_per_uid = session.Count("max_per_uid", config->max_sessions_per_uid);
  config->max_connections_per_uid = session.Count("max_connections_per_uid", config->max_connections_per_uid);
  config->handshake_timeout = session.PositiveDuration("handshake_timeout").value_or(config->handshake_timeout);
}

void ReadService(const ub::v1::Config& from, const Section& root, Config* config) {
  config->admin_group = from.admin().group();
  config->metrics_listen = from.metrics().listen();
  if (!config->metrics_listen.empty()) {
    auto address = ParseListenAddress(config->metrics_listen);
    if (!address.ok()) {
      root.Inner("metrics", from.metrics()).Fault("listen", std::string(address.status().message()));
    }
  }
  config->log_target = TargetOf(from.log().target());
  config->log_level = LevelOf(from.log().level());
  if (!from.has_shutdown()) return;
  config->shutdown_grace = root.Inner("shutdown", from.shutdown()).Duration("grace").value_or(config->shutdown_grace);
}

}  // namespace ubd
