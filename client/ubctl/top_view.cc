#include "client/ubctl/top_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"
#include "client/ubctl/utf8.h"

namespace ub::ctl {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr size_t kBarColumns = 20;

struct ViewLine {
  std::string text;
  std::string_view colour;
};

std::string Rate(const char* name, bool known, double value) {
  return known ? absl::StrFormat("%s %.1f/s", name, value) : absl::StrCat(name, " -");
}

// "path prefer-direct  transfers 12.0/s  data 1.5 GiB/s  direct 98%"
std::string PathLine(const TopSnapshot& snapshot) {
  uint64_t direct = 0;
  uint64_t all = 0;
  for (const v1::PathCount& count : snapshot.path().counts()) {
    all += count.bytes();
    if (count.path() == "direct") direct += count.bytes();
  }
  std::string data = snapshot.has_transfer_bytes_per_s()
                         ? absl::StrCat(HumanSize(static_cast<uint64_t>(snapshot.transfer_bytes_per_s())), "/s")
                         : "-";
  std::string share = all == 0 ? "-"
                               : absl::StrFormat("%.0f%% of the bytes so far",
                                                 100.0 * static_cast<double>(direct) / static_cast<double>(all));
  return absl::StrCat("path ", Printable(snapshot.path().policy()), "  ",
                      Rate("transfers", snapshot.has_transfers_per_s(), snapshot.transfers_per_s()), "  data ", data,
                      "  direct ", share);
}

std::string Bar(const v1::Pool& pool) {
  uint64_t total = std::max<uint64_t>(pool.blocks_total(), 1);
  uint64_t used = pool.blocks_total() - std::min(pool.blocks_free(), pool.blocks_total());
  size_t filled = static_cast<size_t>(used * kBarColumns / total);
  if (used > 0) filled = std::max<size_t>(filled, 1);
  return absl::StrCat("[", std::string(filled, '#'), std::string(kBarColumns - filled, '.'), "] ", used * 100 / total,
                      "%");
}

std::string PoolTable(const TopSnapshot& snapshot) {
  Table table({{"POOL"},
               {"USE"},
               {"SIZE", Align::kRight},
               {"FREE", Align::kRight},
               {"LEASED", Align::kRight},
               {"CACHED", Align::kRight},
               {"DRAINING", Align::kRight},
               {"RECYCLING", Align::kRight},
               {"RETIRED", Align::kRight},
               {"WAITERS", Align::kRight}});
  for (const v1::Pool& pool : snapshot.pools()) {
    auto size = [&pool](uint64_t blocks) { return HumanSize(blocks * pool.block_bytes()); };
    table.Add({pool.name(), Bar(pool), size(pool.blocks_total()), size(pool.blocks_free()), size(pool.blocks_leased()),
               size(pool.blocks_cached()), size(pool.blocks_draining()), size(pool.blocks_recycling()),
               size(pool.blocks_retired()), absl::StrCat(pool.waiters())});
  }
  return table.Text();
}

std::string SessionTable(const TopSnapshot& snapshot, size_t most) {
  Table table({{"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"SIZE", Align::kRight},
               {"LEASES", Align::kRight},
               {"WAITERS", Align::kRight},
               {"AGE", Align::kRight},
               {"NAME"}});
  for (const v1::SessionInfo& session : snapshot.sessions()) {
    if (table.rows() == most) break;
    table.Add({absl::StrCat(session.id()), absl::StrCat(session.pid()), absl::StrCat(session.uid()),
               HumanSize(session.bytes()), absl::StrCat(session.leases()), absl::StrCat(session.waiters()),
               HumanDuration(session.age_ns()), session.name()});
  }
  return table.Text();
}

void AddTable(std::vector<ViewLine>& lines, const std::string& table) {
  std::string_view colour = kBold;
  for (absl::string_view line : absl::StrSplit(absl::string_view(table.data(), table.size() - 1), '\n')) {
    lines.push_back({std::string(line), colour});
    colour = {};
  }
}

std::string Cut(const std::string& line, size_t columns) {
  if (columns == 0) return line;
  size_t seen = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80 && seen++ == columns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string TopText(const TopSnapshot& snapshot, const ViewSize& size) {
  const v1::Status& status = snapshot.status();
  std::vector<ViewLine> lines;
  lines.push_back(
      {absl::StrCat("ubd ", Printable(status.version()), " ", Printable(status.state()), ", up ",
                    HumanDuration(status.uptime_ns()), ": ", status.sessions(), " sessions, ", status.leases(),
                    " leases, ", status.waiters(), " waiters  ", HumanTime(snapshot.unix_time_ns())),
       kBold});
  for (const std::string& problem : status.problem()) lines.push_back({"! " + Printable(problem), kRed});
  lines.push_back({absl::StrCat(Rate("granted", snapshot.has_granted_per_s(), snapshot.granted_per_s()), "  ",
                                Rate("released", snapshot.has_released_per_s(), snapshot.released_per_s()), "  ",
                                Rate("recalled", snapshot.has_recalled_per_s(), snapshot.recalled_per_s()), "  ",
                                Rate("reclaimed", snapshot.has_reclaimed_per_s(), snapshot.reclaimed_per_s()), "  ",
                                Rate("recycled", snapshot.has_recycled_per_s(), snapshot.recycled_per_s())),
                   {}});
  if (snapshot.has_path()) lines.push_back({PathLine(snapshot), {}});
  lines.push_back({"", {}});
  AddTable(lines, PoolTable(snapshot));
  lines.push_back({"", {}});
  size_t taken = lines.size() + 1;  // and the header of the sessions
  size_t left = size.rows == 0 ? SIZE_MAX : size.rows > taken ? size.rows - taken : 0;
  AddTable(lines, SessionTable(snapshot, left));
  if (size.rows != 0 && lines.size() > size.rows) lines.resize(size.rows);
  std::string text;
  for (const ViewLine& line : lines) {
    bool coloured = size.colour && !line.colour.empty();
    absl::StrAppend(&text, coloured ? std::string(line.colour) : "", Cut(line.text, size.columns),
                    coloured ? std::string(kPlain) : "", "\n");
  }
  return text;
}

}  // namespace ub::ctl
