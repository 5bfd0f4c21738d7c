// The audit trail's queue and its lines. Thread-safe where said.
#ifndef UBD_TELEMETRY_AUDIT_H_
#define UBD_TELEMETRY_AUDIT_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/telemetry/event_hub.h"

namespace ubd {

struct AuditEntry {
  std::optional<WatchedEvent> event;
  uint64_t lost_before = 0;  // entries that found the queue full, between the one before and this one
};

// Bounded; when it is full the newest are lost, and counted in their place. Not thread-safe: the hub's lock covers it.
class AuditQueue {
 public:
  void Push(const WatchedEvent& event);
  bool empty() const { return entries_.empty() && lost_ == 0; }
  // Of a queue that is not empty.
  AuditEntry Pop();

 private:
  std::deque<AuditEntry> entries_;
  uint64_t lost_ = 0;  // behind all entries
};

// Writes the entry's line to the log, and one about lost lines before it if there are any. Thread-safe.
void WriteAudit(const AuditEntry& entry);

}  // namespace ubd

#endif  // UBD_TELEMETRY_AUDIT_H_
