#include "daemon/telemetry/log.h"

#include <spdlog/logger.h>

#include <atomic>
#include <memory>
#include <utility>

#include "daemon/telemetry/log_record.h"
#include "daemon/telemetry/log_sinks.h"

namespace ubd {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Two loggers on one sink: a level cuts the log, never the audit.
struct Loggers {
  explicit Loggers(const std::shared_ptr<spdlog::sinks::sink>& sink) : log("ubd", sink), audit("ubd", sink) {
    audit.set_level(spdlog::level::trace);
  }
  spdlog::logger log;
  spdlog::logger audit;
  Loggers* before = nullptr;  // kept: see `current`
};

// Never destroyed: threads may log until the very end, and a thread may still be in the logger that was replaced.
std::atomic<Loggers*> current = nullptr;

void Install(std::unique_ptr<Loggers> loggers) {
  Loggers* fresh = loggers.release();
  fresh->before = current.exchange(fresh);
}

Loggers* Current() {
  Loggers* now = current.load();
  if (now != nullptr) return now;
  auto first = std::make_unique<Loggers>(MakeStderrSink());
  return current.compare_exchange_strong(now, first.get()) ? first.release() : now;
}

void Write(spdlog::logger* logger, spdlog::level::level_enum level, std::string_view text, LogSideChannel side) {
  if (!logger->should_log(level)) return;
  CurrentSideChannel() = side;
  logger->log(level, spdlog::string_view_t(text.data(), text.size()));
  CurrentSideChannel() = {};
}

}  // namespace

void InitLog(LogTarget target, LogLevel level) {
  bool journal = target == LogTarget::kJournald || (target == LogTarget::kAuto && StderrIsTheJournal());
  bool missing = journal && !HaveJournal();
  auto loggers = std::make_unique<Loggers>(journal && !missing ? MakeJournalSink() : MakeStderrSink());
  loggers->log.set_level(ToSpdlog(level));
  Install(std::move(loggers));
  if (missing) LogWarn("no journal on this machine; logging to stderr instead");
}

void SetLogLevel(LogLevel level) { Current()->log.set_level(ToSpdlog(level)); }

void Log(LogLevel level, std::string_view text, LogFields fields) {
  Write(&Current()->log, ToSpdlog(level), text, {fields, false});
}

void LogAudit(std::string_view text, LogFields fields) {
  Write(&Current()->audit, spdlog::level::info, text, {fields, true});
}

}  // namespace ubd
