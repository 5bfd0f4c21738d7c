// The two targets of the log as spdlog sinks. Thread-safe: each record is one system call, so they need no lock.
#ifndef UBD_TELEMETRY_LOG_SINKS_H_
#define UBD_TELEMETRY_LOG_SINKS_H_

#include <spdlog/sinks/sink.h>

#include <memory>

namespace ubd {

std::shared_ptr<spdlog::sinks::sink> MakeStderrSink();
// What journald does not take goes to stderr.
std::shared_ptr<spdlog::sinks::sink> MakeJournalSink();

// Whether the service manager connected this process's stderr to the journal.
bool StderrIsTheJournal();
bool HaveJournal();

}  // namespace ubd

#endif  // UBD_TELEMETRY_LOG_SINKS_H_
