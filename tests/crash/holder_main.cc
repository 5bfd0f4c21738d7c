// ubd_holder RUNTIME_DIR WHAT [BYTES [BLOCK_BYTES]]: see holder.h.
#include <csignal>
#include <cstdlib>

#include "tests/crash/holder.h"

int main(int argc, char** argv) {
  if (argc < 3) ubd::testing::Fail("usage: ubd_holder RUNTIME_DIR WHAT [BYTES [BLOCK_BYTES]]");
  std::signal(SIGPIPE, SIG_IGN);
  ubd::testing::HolderOptions options;
  options.runtime_dir = argv[1];
  options.what = argv[2];
  if (argc > 3) options.bytes = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) options.block_bytes = std::strtoull(argv[4], nullptr, 10);
  if (options.what == "loop") return ubd::testing::RunLoop(options);
  if (options.what == "victim") return ubd::testing::RunVictim(options);
  if (ubd::testing::IsHostileKind(options.what)) return ubd::testing::RunHostile(options);
  return ubd::testing::RunStep(options);
}
