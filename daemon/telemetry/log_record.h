// One log record as its two targets write it. spdlog passes a level and a text; the fields travel beside it, per
// thread, from the call of Log to the sink. Pure but for that thread-local.
#ifndef UBD_TELEMETRY_LOG_RECORD_H_
#define UBD_TELEMETRY_LOG_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "daemon/telemetry/log.h"

namespace ubd {

struct LogSideChannel {
  LogFields fields;
  bool audit = false;
};
// Of this thread's call of Log under way; only valid during it.
LogSideChannel& CurrentSideChannel();

// Control characters (also the 8-bit ones, in UTF-8) would move the cursor of whoever reads the log, or forge lines:
// each becomes '?'.
std::string WithoutControls(std::string_view text);

// `text key=value key="two words"`.
std::string TextWithFields(std::string_view text, const LogFields& fields);
// A whole line for stderr, with its end.
std::string StderrLine(absl::Time time, std::string_view level, std::string_view text, const LogFields& fields);
// "MESSAGE=…", "PRIORITY=6", "SYSLOG_IDENTIFIER=ubd", "UBD_LEASE=7", …
std::vector<std::string> JournalEntry(int priority, std::string_view text, const LogSideChannel& side);

}  // namespace ubd

#endif  // UBD_TELEMETRY_LOG_RECORD_H_
