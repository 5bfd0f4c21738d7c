#include "daemon/memory/page_size.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/memory/huge_pages.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

// "4KiB, 2MiB, 1GiB", as far as this kernel has them.
std::string KnownSizes(const SystemFiles& files) {
  std::vector<std::string> known = {ub::FormatSize(SmallPageSize())};
  for (Bytes size : {ub::MiB(2), ub::GiB(1)}) {
    if (ReadHugePages(files, size, std::nullopt)) known.push_back(ub::FormatSize(size));
  }
  return absl::StrJoin(known, ", ");
}

absl::Status Refuse(const HostPoolConfig& pool, const std::string& why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
                       absl::StrCat("pool ", pool.spec.name, ": ", why),
                       {{"pool", pool.spec.name}, {"page_size", absl::StrCat(pool.page_size.count())}});
}

}  // namespace

Bytes SmallPageSize() { return Bytes(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))); }

absl::Status CheckPageSize(const SystemFiles& files, const HostPoolConfig& pool) {
  const Bytes size = pool.page_size;
  if (size == Bytes(0)) return absl::OkStatus();
  if (size != SmallPageSize() && !(size > SmallPageSize() && ReadHugePages(files, size, std::nullopt))) {
    return Refuse(pool, absl::StrCat("this machine has no pages of ", ub::FormatSize(size), "; it has ",
                                     KnownSizes(files), ". Set page_size to one of them or to \"auto\""));
  }
  if (pool.spec.block_bytes % size != Bytes(0)) {
    return Refuse(pool,
                  absl::StrCat("block_size ", ub::FormatSize(pool.spec.block_bytes), " is not a multiple of page_size ",
                               ub::FormatSize(size), "; use smaller pages or larger blocks"));
  }
  return absl::OkStatus();
}

PageChoice ChoosePageSize(const HostPoolConfig& pool, Budgets& budgets) {
  if (pool.page_size != Bytes(0)) return {pool.page_size, "as configured"};
  const Bytes huge = ub::MiB(2);
  const Bytes small = SmallPageSize();
  if (pool.spec.block_bytes % huge != Bytes(0)) return {small, "auto: the blocks are no multiple of 2MiB"};
  const uint64_t backings = uint64_t{pool.spec.blocks} + pool.reserve_blocks;
  const std::vector<Draw> draws = budgets.DrawsFor(pool, huge);
  const Fit fit = FitOf(draws);
  const Bytes wanted = pool.spec.block_bytes * backings;
  if (fit.backings >= backings) {
    return {huge, absl::StrCat("auto: there are enough huge pages for the pool and its reserve (",
                               ub::FormatSize(wanted), ")")};
  }
  const Budget& short_of = *fit.tightest->budget;
  const bool in_bytes = short_of.unit == "bytes";
  std::string left = in_bytes ? ub::FormatSize(Bytes(short_of.left)) : absl::StrCat(short_of.left, " ", short_of.unit);
  return {small, absl::StrCat("auto: the pool and its reserve need ", ub::FormatSize(wanted),
                              " in huge pages of 2MiB, but ", short_of.limit, " leaves ", left)};
}

}  // namespace ubd
