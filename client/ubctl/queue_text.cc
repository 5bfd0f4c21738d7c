#include "client/ubctl/queue_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"

namespace ub::ctl {
namespace {

std::string Count(uint64_t value) { return absl::StrCat(value); }

}  // namespace

std::string QueuesText(const v1::QueueList& list) {
  Table table({{"QUEUE", Align::kRight},
               {"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"NAME"},
               {"STATE"},
               {"POLICY"},
               {"DEPTH", Align::kRight},
               {"WAITING", Align::kRight},
               {"IN-FLIGHT", Align::kRight},
               {"OLDEST", Align::kRight},
               {"UNREAD", Align::kRight},
               {"COMPLETED", Align::kRight},
               {"FAILED", Align::kRight},
               {"BYTES", Align::kRight},
               {"EMPTY-POLLS", Align::kRight},
               {"SLEEPS", Align::kRight}});
  for (const v1::Queue& queue : list.queues()) {
    std::string empty = "-";
    if (queue.polls() > 0)
      empty = absl::StrFormat("%.1f%%",
                              100.0 * static_cast<double>(queue.empty_polls()) / static_cast<double>(queue.polls()));
    table.Add({Count(queue.id()), Count(queue.session()), absl::StrCat(queue.pid()), Count(queue.uid()), queue.name(),
               queue.state(), queue.policy(), Count(queue.depth()), Count(queue.waiting()), Count(queue.in_flight()),
               queue.has_oldest_ns() ? HumanDuration(queue.oldest_ns()) : "-", Count(queue.unread()),
               Count(queue.completed()), Count(queue.failed()), HumanSize(queue.bytes()), empty,
               Count(queue.sleeps())});
  }
  return table.Text();
}

std::string PathText(const v1::PathStatus& path) {
  std::string text = KeyValueText({
      {"policy", path.policy()},
      {"direct from", absl::StrCat(HumanSize(path.min_direct_bytes()), " on, under prefer-direct")},
      {"file engine", path.file_engine()},
      {"registered", absl::StrCat(path.registered() ? "yes: " : "no: ", path.registration())},
  });
  Table table({{"PATH"},
               {"REASON"},
               {"FROM"},
               {"TO"},
               {"TRANSFERS", Align::kRight},
               {"BYTES", Align::kRight},
               {"FAILED", Align::kRight}});
  for (const v1::PathCount& count : path.counts()) {
    table.Add({count.path(), count.reason().empty() ? "-" : count.reason(), count.from(), count.to(),
               Count(count.transfers()), HumanSize(count.bytes()), Count(count.failed())});
  }
  return absl::StrCat(text, "\n", table.Text());
}

}  // namespace ub::ctl
