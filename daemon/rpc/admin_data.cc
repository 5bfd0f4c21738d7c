// The data path for operators: queues, path policy, what really happened.
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/translate_data.h"
#include "daemon/rpc/validators.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"
#include "proto/wire/queue_names.h"

namespace ubd {

void AdminService::ListenData() {
  using S = ub::v1::Admin::AsyncService;
  ServeUnary(context_, service_, &S::RequestListQueues, "Admin.ListQueues", [this](auto call) { ListQueues(call); });
  ServeUnary(context_, service_, &S::RequestGetPath, "Admin.GetPath",
             [this](auto call) { call->Reply(ToProto(context_.deps.engine.Paths())); });
  ServeUnary(context_, service_, &S::RequestSetPath, "Admin.SetPath", [this](auto call) { SetPath(call); });
}

// Whose a queue is, the Broker's list of sessions says; it holds those that the caller may see. A queue whose session
// has ended, with transfers in flight, is shown to admins only.
void AdminService::ListQueues(const CallPtr<ub::v1::ListQueuesRequest, ub::v1::QueueList>& call) {
  if (!MayList(call)) return;
  const Viewer viewer = context_.ViewerOf(call->peer());
  absl::flat_hash_map<SessionId, SessionFacts> owners;
  for (SessionListing& session : context_.deps.broker.Sessions(viewer))
    owners.emplace(session.facts.id, std::move(session.facts));
  ub::v1::QueueList list;
  for (const QueueListing& queue : context_.deps.engine.Queues()) {
    auto owner = owners.find(queue.session);
    if (owner == owners.end() && !viewer.admin) continue;
    *list.add_queues() = ToProto(queue, owner == owners.end() ? nullptr : &owner->second);
  }
  call->Reply(list);
}

void AdminService::SetPath(const CallPtr<ub::v1::SetPathRequest, ub::v1::PathStatus>& call) {
  absl::StatusOr<ub::wire::PathPolicy> policy = CheckSetPath(call->request());
  if (!policy.ok()) return call->Fail(policy.status());
  if (!context_.ViewerOf(call->peer()).admin) {
    return call->Fail(ub::MakeError(absl::StatusCode::kPermissionDenied, ub::Reason::kNotAdmin,
                                    "only root, the daemon's own user and the configured admin group may set the "
                                    "node's path policy: ask one of them, or say the policy per queue or transfer"));
  }
  context_.deps.engine.SetPolicy(*policy);
  LogInfo("path policy set", {{"policy", ub::wire::PathPolicyName(*policy)},
                              {"uid", absl::StrCat(call->peer().uid.value())},
                              {"pid", absl::StrCat(call->peer().pid)}});
  call->Reply(ToProto(context_.deps.engine.Paths()));
}

}  // namespace ubd
