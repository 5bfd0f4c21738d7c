#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/read.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

constexpr size_t kLongestName = 63;
constexpr int kMostNodes = 1024;  // the kernel's own limit (CONFIG_NODES_SHIFT)

bool ValidName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

void ReadName(const ub::v1::PoolConfig& from, const Section& at, bool mistyped, PoolSpec* spec) {
  if (!from.has_name()) {
    if (!mistyped) at.Fault("name", "a pool without a name; add for example name: \"host\"");
    return;
  }
  spec->name = from.name();
  if (!ValidName(spec->name)) {
    at.Fault("name", absl::StrCat("bad pool name \"", spec->name, "\"; use 1 to ", kLongestName,
                                  " letters, digits, '-', '_' or '.'"));
  }
}

void ReadKind(const ub::v1::PoolConfig& from, const Section& at, PoolSpec* spec) {
  spec->kind = from.has_kind() ? from.kind() : "host";
  if (spec->kind == "host") return;
  std::string text = absl::StrCat("kind \"", spec->kind, "\"");
  if (absl::StartsWith(spec->kind, "cuda")) {
    absl::StrAppend(&text, " needs a ubd with GPU pools and the NVIDIA driver; this build has only \"host\" pools");
  } else {
    absl::StrAppend(&text, " is unknown; the one kind of this build is \"host\"");
  }
  at.Fault("kind", text);
}

void ReadBlocks(const ub::v1::PoolConfig& from, const Section& at, bool mistyped, PoolSpec* spec) {
  // A size that did not parse is reported already; the default stands in for it.
  spec->block_bytes = at.Size("block_size").value_or(ub::MiB(64));
  if (spec->block_bytes.count() == 0 || (spec->block_bytes % kBlockUnit).count() != 0) {
    at.Fault("block_size", absl::StrCat("block_size \"", from.block_size(), "\" is not a multiple of 2MiB"));
  } else if (spec->block_bytes > kLargestBlock) {
    at.Fault("block_size", absl::StrCat("block_size \"", from.block_size(),
                                        "\" is larger than 1GiB, the largest block; "
                                        "a lease may hold many blocks"));
  }
  spec->blocks = from.blocks();
  if (!from.has_blocks()) {
    if (!mistyped)
      at.Fault("blocks", absl::StrCat("pool \"", spec->name, "\" does not say how many blocks; add blocks: N"));
  } else if (spec->blocks == 0) {
    at.Fault("blocks", "\"blocks\" must be at least 1; leave the whole pool out to have none");
  }
  spec->isolation = from.isolation() == ub::v1::NONE ? Isolation::kNone : Isolation::kPerUid;
}

void ReadPages(const ub::v1::PoolConfig& from, const Section& at, HostPoolConfig* pool) {
  const std::string word = from.has_page_size() ? from.page_size() : "auto";
  const std::map<std::string, Bytes> words = {
      {"auto", Bytes(0)}, {"4KiB", ub::KiB(4)}, {"2MiB", ub::MiB(2)}, {"1GiB", ub::GiB(1)}};
  auto found = words.find(word);
  if (found == words.end()) {
    return at.Fault("page_size",
                    absl::StrCat("page_size \"", word, "\" is none of \"auto\", \"4KiB\", \"2MiB\", \"1GiB\""));
  }
  pool->page_size = found->second;
  if (pool->page_size == ub::GiB(1) && pool->spec.block_bytes != ub::GiB(1)) {
    at.Fault("page_size", absl::StrCat("pages of 1GiB need blocks of 1GiB, not ",
                                       ub::FormatSize(pool->spec.block_bytes), "; set block_size: \"1GiB\""));
  }
}

void ReadPlacement(const ub::v1::PoolConfig& from, const Section& at, HostPoolConfig* pool) {
  if (from.has_numa_node()) {
    pool->numa_node = from.numa_node();
    if (from.numa_node() < 0 || from.numa_node() >= kMostNodes) {
      at.Fault("numa_node", absl::StrCat("numa_node ", from.numa_node(), " is no node; leave it out for any node"));
    }
  }
  pool->reserve_blocks = at.Count("reserve_blocks", std::max<uint32_t>(1, pool->spec.blocks / 8));
  pool->lock_pages = from.lock_pages() == ub::v1::REQUIRED ? Demand::kRequired
                     : from.lock_pages() == ub::v1::OFF    ? Demand::kOff
                                                           : Demand::kIfPossible;
  pool->allow_smaller = from.allow_smaller();
  pool->min_blocks = at.Count("min_blocks", 1);
  if (from.has_min_blocks() && from.has_blocks() && pool->min_blocks > pool->spec.blocks) {
    at.Fault("min_blocks", absl::StrCat("min_blocks ", pool->min_blocks, " is more than blocks, ", pool->spec.blocks));
  }
}

// Block ids have 32 bits through all pools, and sizes are added up in 64.
void CheckTotals(const Section& root, const std::vector<HostPoolConfig>& pools) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 60;
  uint64_t backings = 0, bytes = 0;
  for (const HostPoolConfig& pool : pools) {
    uint64_t blocks = uint64_t{pool.spec.blocks} + pool.reserve_blocks;
    backings += blocks;
    // A pool has less than 2^33 backings; anything above the limit of one block is a fault already.
    bytes = std::min(kMostBytes, bytes + blocks * std::min(pool.spec.block_bytes, kLargestBlock).count());
  }
  if (backings > std::numeric_limits<uint32_t>::max() || bytes >= kMostBytes) {
    root.Fault("pool",
               absl::StrCat("all pools and reserves together ask for ", backings, " blocks; no machine has that"));
  }
}

}  // namespace

void ReadPools(const ub::v1::Config& from, const Section& root, bool mistyped, Config* config) {
  if (from.pool_size() == 0 && !mistyped) {
    root.Fault("pool", "no pool; add at least one, for example pool { name: \"host\" blocks: 8 }");
  }
  std::map<std::string, TextPosition> names;
  for (int i = 0; i < from.pool_size(); ++i) {
    Section at = root.Inner("pool", from.pool(i), i);
    HostPoolConfig pool;
    ReadName(from.pool(i), at, mistyped, &pool.spec);
    auto [first, fresh] = names.emplace(pool.spec.name, at.At("name"));
    if (!fresh && from.pool(i).has_name()) {
      at.Fault("name", absl::StrCat("a second pool named \"", pool.spec.name, "\"; the first is at ",
                                    first->second.line, ":", first->second.column));
    }
    ReadKind(from.pool(i), at, &pool.spec);
    ReadBlocks(from.pool(i), at, mistyped, &pool.spec);
    ReadPages(from.pool(i), at, &pool);
    ReadPlacement(from.pool(i), at, &pool);
    config->pools.push_back(std::move(pool));
  }
  CheckTotals(root, config->pools);
}

}  // namespace ubd
