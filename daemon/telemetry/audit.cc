#include "daemon/telemetry/audit.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/telemetry/log.h"

namespace ubd {
namespace {

template <class Id>
std::string Text(const std::optional<Id>& id) {
  return id ? absl::StrCat(id->value()) : "";
}

}  // namespace

void AuditQueue::Push(const WatchedEvent& event) {
  if (entries_.size() == EventHub::kAuditCapacity) {
    ++lost_;
    return;
  }
  entries_.push_back({event, std::exchange(lost_, 0)});
}

AuditEntry AuditQueue::Pop() {
  if (entries_.empty()) return {std::nullopt, std::exchange(lost_, 0)};
  AuditEntry entry = std::move(entries_.front());
  entries_.pop_front();
  return entry;
}

void WriteAudit(const AuditEntry& entry) {
  if (entry.lost_before > 0)
    LogError("audit lines lost: the log is too slow", {{"lines", absl::StrCat(entry.lost_before)}});
  if (!entry.event) return;
  const Event& event = entry.event->event;
  LogAudit(EventKindName(event.kind),
           {{"seq", absl::StrCat(entry.event->seq)},
            {"lease", Text(event.lease)},
            {"session", Text(event.session)},
            {"uid", Text(event.uid)},
            {"pid", event.pid ? absl::StrCat(*event.pid) : ""},
            {"pool", event.pool},
            {"bytes", event.bytes.count() > 0 ? absl::StrCat(event.bytes.count()) : ""},
            {"waited", event.waited > absl::ZeroDuration() ? absl::FormatDuration(event.waited) : ""},
            {"detail", event.text}});
}

}  // namespace ubd
