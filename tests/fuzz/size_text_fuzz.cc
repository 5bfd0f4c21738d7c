// Sizes and durations as people write them: any text is taken exactly or refused, and what FormatSize writes is read
// back as the same size.
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/wire/size_text.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  auto bytes = ub::ParseSize(text);
  if (bytes.ok()) {
    auto again = ub::ParseSize(ub::FormatSize(*bytes));
    Demand(again.ok() && *again == *bytes);
  } else {
    Demand(!bytes.status().message().empty());
  }
  auto duration = ub::ParseDuration(text);
  Demand(!duration.ok() || *duration >= absl::ZeroDuration());
  return 0;
}
