#include "daemon/telemetry/log_sinks.h"

// The location would be this file's, in every record.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <spdlog/details/log_msg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/telemetry/log_record.h"

namespace ubd {
namespace {

constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

std::string_view TextOf(const spdlog::details::log_msg& msg) { return {msg.payload.data(), msg.payload.size()}; }

std::string_view LevelWord(const spdlog::details::log_msg& msg) {
  if (CurrentSideChannel().audit) return "audit";
  switch (msg.level) {
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warn";
    case spdlog::level::err:
      return "error";
    default:
      return "info";
  }
}

// syslog's numbers.
int Priority(const spdlog::details::log_msg& msg) {
  if (CurrentSideChannel().audit) return 5;
  switch (msg.level) {
    case spdlog::level::debug:
      return 7;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::err:
      return 3;
    default:
      return 6;
  }
}

class FieldSink : public spdlog::sinks::sink {
 public:
  void flush() override {}
  void set_pattern(const std::string&) override {}  // the format is the targets' own
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

class StderrSink : public FieldSink {
 public:
  void log(const spdlog::details::log_msg& msg) override {
    std::string line = StderrLine(absl::FromChrono(msg.time), LevelWord(msg), TextOf(msg), CurrentSideChannel().fields);
    for (size_t done = 0; done < line.size();) {
      ssize_t wrote = write(STDERR_FILENO, line.data() + done, line.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return;  // nobody to tell
      done += static_cast<size_t>(wrote);
    }
  }
};

class JournalSink : public FieldSink {
 public:
  void log(const spdlog::details::log_msg& msg) override {
    std::vector<std::string> entry = JournalEntry(Priority(msg), TextOf(msg), CurrentSideChannel());
    std::vector<iovec> parts;
    parts.reserve(entry.size());
    for (std::string& field : entry) parts.push_back({field.data(), field.size()});
    if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) fallback_.log(msg);
  }

 private:
  StderrSink fallback_;
};

}  // namespace

std::shared_ptr<spdlog::sinks::sink> MakeStderrSink() { return std::make_shared<StderrSink>(); }
std::shared_ptr<spdlog::sinks::sink> MakeJournalSink() { return std::make_shared<JournalSink>(); }

bool StderrIsTheJournal() {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat info;
  if (stream == nullptr || fstat(STDERR_FILENO, &info) != 0) return false;
  return absl::StrCat(info.st_dev, ":", info.st_ino) == stream;
}

bool HaveJournal() { return access(kJournalSocket, W_OK) == 0; }

}  // namespace ubd
