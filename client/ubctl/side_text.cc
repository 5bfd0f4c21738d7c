#include "client/ubctl/side_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"

namespace ub::ctl {
namespace {

constexpr char kNone[] = "-";

std::string CpuText(bool known, double seconds) { return known ? absl::StrFormat("%.3f", seconds) : kNone; }

}  // namespace

std::string RateText(bool known, double bytes_per_s) {
  return known ? absl::StrCat(HumanSize(static_cast<uint64_t>(bytes_per_s)), "/s") : kNone;
}

std::string SidesText(const std::vector<std::pair<std::string, const TransferSide*>>& sides) {
  Table table({{"WAY"},
               {"THROUGHPUT", Align::kRight},
               {"CPU-S/GB", Align::kRight},
               {"CLIENT", Align::kRight},
               {"DAEMON", Align::kRight},
               {"P50", Align::kRight},
               {"P99", Align::kRight},
               {"PATH"}});
  for (const auto& [name, side] : sides) {
    std::string path = side->reason().empty() ? side->path() : absl::StrCat(side->path(), ": ", side->reason());
    if (side->has_registered() && !side->registered()) path += ", not registered";
    table.Add({name, RateText(side->has_bytes_per_s(), side->bytes_per_s()),
               CpuText(side->has_cpu_s_per_gb(), side->cpu_s_per_gb()),
               CpuText(side->has_client_cpu_s_per_gb(), side->client_cpu_s_per_gb()),
               CpuText(side->has_daemon_cpu_s_per_gb(), side->daemon_cpu_s_per_gb()),
               side->has_p50_ns() ? HumanDuration(side->p50_ns()) : kNone,
               side->has_p99_ns() ? HumanDuration(side->p99_ns()) : kNone, side->has_note() ? side->note() : path});
  }
  return table.Text();
}

}  // namespace ub::ctl
