// queues; path get, path set.
#include <memory>

#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/queue_text.h"

namespace ub::ctl {
namespace {

ExitCode RunQueues(const Context& context) {
  auto list = AskDaemon(context, &Admin::Stub::ListQueues, v1::ListQueuesRequest());
  if (!list.ok()) return Fail(context, list.status());
  return Print(context, *list, QueuesText(*list));
}

ExitCode RunPathGet(const Context& context) {
  auto path = AskDaemon(context, &Admin::Stub::GetPath, v1::GetPathRequest());
  if (!path.ok()) return Fail(context, path.status());
  return Print(context, *path, PathText(*path));
}

ExitCode RunPathSet(const Context& context, const std::string& policy) {
  v1::SetPathRequest request;
  request.set_policy(policy);
  auto path = AskDaemon(context, &Admin::Stub::SetPath, request);
  if (!path.ok()) return Fail(context, path.status());
  return Print(context, *path, PathText(*path));
}

}  // namespace

void AddQueueCommands(CommandLine& line) {
  line.Command("queues", "Queues that you may see: depth, in flight, oldest, empty polls", RunQueues);
  CLI::App& group = line.Group("path", "How transfers may go on this node, and how they went");
  line.Command(group, "get", "The policy, and transfers by path and reason", RunPathGet);
  auto policy = std::make_shared<std::string>();
  CLI::App& set = line.Command(group, "set", "Change the policy, for transfers that are taken from now on",
                               [policy](const Context& c) { return RunPathSet(c, *policy); });
  set.add_option("POLICY", *policy, "direct-only, prefer-direct or staged-only")
      ->required()
      ->check(CLI::IsMember({"direct-only", "prefer-direct", "staged-only"}));
}

}  // namespace ub::ctl
