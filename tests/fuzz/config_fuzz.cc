// Any config file: it is taken or refused with a place for every fault, and what a taken one means can be written down
// and read back.
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/config/config.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<ubd::Config> config = ubd::ParseConfig(text, "fuzzed");
  if (!config.ok()) {
    Demand(config.status().message().find("fuzzed") != absl::string_view::npos);
    return 0;
  }
  Demand(!config->pools.empty() && (config->socket_mode & 07) == 0);
  for (const ubd::HostPoolConfig& pool : config->pools) {
    Demand(pool.spec.blocks >= 1 && pool.spec.block_bytes >= ub::MiB(2) && pool.spec.block_bytes <= ub::GiB(1));
  }
  const ubd::EngineOptions& engine = config->engine;
  Demand(engine.threads >= 1 && engine.threads <= 64 && engine.depth >= 1 && engine.depth <= 1024);
  Demand(engine.chunk >= ub::KiB(4) && engine.chunk <= ub::MiB(64) && (engine.chunk % ub::KiB(4)).count() == 0);
  Demand(engine.spin <= absl::Milliseconds(10) && engine.nice >= -20 && engine.nice <= 19);
  Demand(engine.policy != ub::wire::PathPolicy::kDefault && !engine.files.file_systems.empty());
  std::string effective = ubd::EffectiveConfig(*config);
  absl::StatusOr<ubd::Config> again = ubd::ParseConfig(effective, "effective");
  Demand(again.ok() && ubd::EffectiveConfig(*again) == effective);
  return 0;
}
