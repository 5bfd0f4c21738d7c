// pools, blocks.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/listing_text.h"

namespace ub::ctl {
namespace {

ExitCode RunPools(const Context& context) {
  auto list = AskDaemon(context, &Admin::Stub::ListPools, v1::ListPoolsRequest());
  if (!list.ok()) return Fail(context, list.status());
  return Print(context, *list, PoolsText(*list));
}

ExitCode RunBlocks(const Context& context, const std::string& pool) {
  v1::ListBlocksRequest request;
  if (!pool.empty()) request.set_pool(pool);
  auto list = AskDaemon(context, &Admin::Stub::ListBlocks, request);
  if (!list.ok()) return Fail(context, list.status());
  return Print(context, *list, BlocksText(*list));
}

}  // namespace

void AddPoolCommands(CommandLine& line) {
  line.Command("pools", "Pools with their block counts by state", RunPools);
  auto pool = std::make_shared<std::string>();
  CLI::App& blocks =
      line.Command("blocks", "Every block with its state", [pool](const Context& c) { return RunBlocks(c, *pool); });
  blocks.add_option("--pool", *pool, "Only this pool")->type_name("NAME");
}

}  // namespace ub::ctl
