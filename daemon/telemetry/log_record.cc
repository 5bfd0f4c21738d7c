#include "daemon/telemetry/log_record.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

// Clients choose some values (their names); quotes keep `name=x uid=0` from looking like two fields.
std::string Shown(const std::string& value) {
  std::string clean = WithoutControls(value);
  if (clean.find_first_of(" \"=\\") == std::string::npos) return clean;
  std::string quoted = "\"";
  for (char c : clean) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

// Journald takes capitals, digits and '_' only.
std::string FieldName(std::string_view name) {
  std::string field = "UBD_";
  for (char c : name)
    field.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? absl::ascii_toupper(c) : '_');
  return field;
}

}  // namespace

LogSideChannel& CurrentSideChannel() {
  thread_local LogSideChannel side;
  return side;
}

std::string WithoutControls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (c == 0xc2 && next >= 0x80 && next <= 0x9f) ++i, c = 0;
    clean.push_back(absl::ascii_iscntrl(c) ? '?' : static_cast<char>(c));
  }
  return clean;
}

std::string TextWithFields(std::string_view text, const LogFields& fields) {
  std::string line = WithoutControls(text);
  for (const auto& [name, value] : fields) {
    if (!value.empty()) absl::StrAppend(&line, " ", std::string(name), "=", Shown(value));
  }
  return line;
}

std::string StderrLine(absl::Time time, std::string_view level, std::string_view text, const LogFields& fields) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone()), " ", std::string(level),
                      " ", TextWithFields(text, fields), "\n");
}

std::vector<std::string> JournalEntry(int priority, std::string_view text, const LogSideChannel& side) {
  // The message repeats the fields: a plain `journalctl -u ubd` shows nothing else.
  std::vector<std::string> entry = {absl::StrCat("MESSAGE=", TextWithFields(text, side.fields)),
                                    absl::StrCat("PRIORITY=", priority), "SYSLOG_IDENTIFIER=ubd"};
  if (side.audit) {
    entry.push_back("UBD_AUDIT=1");
    entry.push_back(absl::StrCat("UBD_EVENT=", WithoutControls(text)));
  }
  for (const auto& [name, value] : side.fields) {
    if (!value.empty()) entry.push_back(absl::StrCat(FieldName(name), "=", WithoutControls(value)));
  }
  return entry;
}

}  // namespace ubd
