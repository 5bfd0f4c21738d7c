// Logs through spdlog: to journald with real fields (UBD_SESSION, UBD_LEASE, UBD_UID, UBD_PID, …) or to stderr as `text key=value`. Thread-safe.
// Never pass a token, a ticket or a key.
#ifndef UBD_TELEMETRY_LOG_H_
#define UBD_TELEMETRY_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ubd {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogTarget { kAuto, kStderr, kJournald };

// Field names are lower-case words; values are shown as they are (control characters replaced).
using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

void InitLog(LogTarget target, LogLevel level);
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view text, LogFields fields = {});
inline void LogInfo(std::string_view text, LogFields fields = {}) { Log(LogLevel::kInfo, text, fields); }
inline void LogWarn(std::string_view text, LogFields fields = {}) { Log(LogLevel::kWarn, text, fields); }
inline void LogError(std::string_view text, LogFields fields = {}) { Log(LogLevel::kError, text, fields); }
// An audit line: grant, share, release, reclaim, revoke, tampering. Journald: SYSLOG_IDENTIFIER=ubd, UBD_AUDIT=1.
void LogAudit(std::string_view text, LogFields fields);

}  // namespace ubd

#endif  // UBD_TELEMETRY_LOG_H_
