// Logs through spdlog: to journald with real fields (UBD_SESSION, UBD_LEASE, UBD_UID, UBD_PID, …) or to stderr as
// `2026-01-31T12:00:00.000Z info text key=value`, one write per line. Thread-safe; before InitLog, to stderr from kInfo
// up. Never pass a token, a ticket or a key.
#ifndef UBD_TELEMETRY_LOG_H_
#define UBD_TELEMETRY_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ubd {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogTarget { kAuto, kStderr, kJournald };

// Field names are lower-case words; values are shown as they are (control characters replaced; in quotes on stderr
// where a value could be taken for more than one). A field with an empty value is left out.
using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

// kAuto: journald where the service manager connected stderr to it, else stderr. kJournald on a machine without a
// journal says so on stderr and logs there. For the start of the program, and again if need be.
void InitLog(LogTarget target, LogLevel level);
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view text, LogFields fields = {});
inline void LogInfo(std::string_view text, LogFields fields = {}) { Log(LogLevel::kInfo, text, fields); }
inline void LogWarn(std::string_view text, LogFields fields = {}) { Log(LogLevel::kWarn, text, fields); }
inline void LogError(std::string_view text, LogFields fields = {}) { Log(LogLevel::kError, text, fields); }
// An audit line: grant, share, release, reclaim, revoke, tampering. Written at every level. Journald:
// SYSLOG_IDENTIFIER=ubd, UBD_AUDIT=1, UBD_EVENT=text.
void LogAudit(std::string_view text, LogFields fields);

}  // namespace ubd

#endif  // UBD_TELEMETRY_LOG_H_
