#include "absl/time/time.h"
#include "daemon/config/message.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

using ub::FormatSize;
using ub::wire::PathPolicy;

ub::v1::PathConfig::Policy PolicyOf(PathPolicy policy) {
  switch (policy) {
    case PathPolicy::kDirectOnly:
      return ub::v1::PathConfig::DIRECT_ONLY;
    case PathPolicy::kStagedOnly:
      return ub::v1::PathConfig::STAGED_ONLY;
    default:
      return ub::v1::PathConfig::PREFER_DIRECT;
  }
}

}  // namespace

void WriteEngine(const EngineOptions& engine, ub::v1::Config* message) {
  ub::v1::EngineConfig* to = message->mutable_engine();
  to->set_threads(engine.threads);
  for (uint32_t cpu : engine.cpus) to->add_cpu(cpu);
  to->set_nice(engine.nice);
  to->set_spin(absl::FormatDuration(engine.spin));
  to->set_client_spin(absl::FormatDuration(engine.client_spin));
  to->set_register_blocks(engine.register_blocks == Demand::kRequired ? ub::v1::REQUIRED
                          : engine.register_blocks == Demand::kOff    ? ub::v1::OFF
                                                                      : ub::v1::IF_POSSIBLE);
  to->set_depth(engine.depth);
  to->set_chunk(FormatSize(engine.chunk));
  to->set_max_queues_per_session(engine.max_queues_per_session);
  to->set_max_files_per_session(engine.max_files_per_session);
  to->set_max_in_flight_per_session(engine.max_in_flight_per_session);
  for (const std::string& name : engine.files.file_systems) to->add_file_system(name);
  for (const std::string& name : engine.files.slow_devices) to->add_slow_device(name);
  ub::v1::PathConfig* path = message->mutable_path();
  path->set_policy(PolicyOf(engine.policy));
  path->set_min_direct_storage(FormatSize(engine.min_direct_storage));
  path->set_min_direct_network(FormatSize(engine.min_direct_network));
}

}  // namespace ubd
