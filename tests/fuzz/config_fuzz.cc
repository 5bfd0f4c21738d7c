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
  std::string effective = ubd::EffectiveConfig(*config);
  absl::StatusOr<ubd::Config> again = ubd::ParseConfig(effective, "effective");
  Demand(again.ok() && ubd::EffectiveConfig(*again) == effective);
  return 0;
}
