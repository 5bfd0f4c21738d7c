#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "daemon/config/message.h"

namespace ubd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

// Everything else is built into sockets, threads and memory at the start. A key that is new in the schema needs a
// restart until it is listed here and carried over below.
bool Reloads(const std::string& section, const std::string& key) {
  static const auto* keys = new std::set<std::string>{"log.level", "session.handshake_timeout"};
  return section == "quota" || section == "lease" || section == "path" ||
         keys->contains(absl::StrCat(section, ".", key));
}

// The message with nothing but `field` in it, so that one comparison serves every type.
std::unique_ptr<Message> Only(const Message& message, const FieldDescriptor* field) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* other = message.GetDescriptor()->field(i);
    if (other != field) copy->GetReflection()->ClearField(copy.get(), other);
  }
  return copy;
}

void CompareSection(const std::string& name, const Message& running, const Message& wanted, ReloadPlan* plan) {
  for (int i = 0; i < running.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = running.GetDescriptor()->field(i);
    if (MessageDifferencer::Equals(*Only(running, field), *Only(wanted, field))) continue;
    (Reloads(name, field->name()) ? plan->changed : plan->needs_restart)
        .push_back(absl::StrCat(name, ".", field->name()));
  }
}

void ComparePools(const ub::v1::Config& running, const ub::v1::Config& wanted, ReloadPlan* plan) {
  std::map<std::string, const ub::v1::PoolConfig*> old;
  for (const auto& pool : running.pool()) old.emplace(pool.name(), &pool);
  size_t before = plan->needs_restart.size();
  for (const auto& pool : wanted.pool()) {
    auto found = old.find(pool.name());
    if (found == old.end()) {
      plan->needs_restart.push_back(absl::StrCat("pool \"", pool.name(), "\" (new)"));
      continue;
    }
    CompareSection(absl::StrCat("pool \"", pool.name(), "\""), *found->second, pool, plan);
    old.erase(found);
  }
  for (const auto& [name, pool] : old) plan->needs_restart.push_back(absl::StrCat("pool \"", name, "\" (removed)"));
  if (plan->needs_restart.size() > before) return;
  // The first pool is the default one, so their order has a meaning.
  for (int i = 0; i < running.pool_size(); ++i) {
    if (running.pool(i).name() != wanted.pool(i).name()) return plan->needs_restart.push_back("pool (order)");
  }
}

}  // namespace

ReloadPlan PlanReload(const Config& running, const Config& wanted) {
  ReloadPlan plan;
  ub::v1::Config before = ToMessage(running), after = ToMessage(wanted);
  ComparePools(before, after, &plan);
  for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = before.GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    CompareSection(field->name(), before.GetReflection()->GetMessage(before, field),
                   after.GetReflection()->GetMessage(after, field), &plan);
  }
  plan.merged = running;
  plan.merged.limits = wanted.limits;
  plan.merged.log_level = wanted.log_level;
  plan.merged.handshake_timeout = wanted.handshake_timeout;
  plan.merged.engine.policy = wanted.engine.policy;
  plan.merged.engine.min_direct_storage = wanted.engine.min_direct_storage;
  plan.merged.engine.min_direct_network = wanted.engine.min_direct_network;
  return plan;
}

}  // namespace ubd
