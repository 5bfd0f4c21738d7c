// The client program of the crash tests: takes a lease by hand and stops, or misbehaves, where it is told. It speaks
// with its test by lines: what it has reached goes to stdout, what it may do next comes on stdin.
#ifndef UBD_TESTS_CRASH_HOLDER_H_
#define UBD_TESTS_CRASH_HOLDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/raw_client.h"

namespace ubd::testing {

struct HolderOptions {
  std::string runtime_dir;
  std::string what;
  uint64_t bytes = 2 << 20;
  uint64_t block_bytes = 2 << 20;
};

// A lease as this process has it.
struct HeldLease {
  ub::v1::Lease lease;
  std::vector<ub::UniqueFd> fds;
  std::vector<std::byte*> maps;  // one per block
};

// Says where it is. Flushed, since the next thing may be SIGKILL.
void Say(const std::string& line);
// Waits for the test's word; exits when the test is gone.
std::string Hear();
// Says why on stderr and exits with 1.
[[noreturn]] void Fail(const std::string& why);

// Maps one block, or fails.
std::byte* MapBlock(int fd, const HolderOptions& options);
// Acquire, read the grant, map all blocks.
HeldLease TakeLease(RawClient& client, const HolderOptions& options, uint64_t request, absl::Duration wait);
void Unmap(HeldLease& held, const HolderOptions& options);
// Fills every block with `byte`.
void Fill(const HeldLease& held, const HolderOptions& options, int byte);

// Each returns the exit code of the program, or never.
int RunStep(const HolderOptions& options);     // request-sent, grant-written, fds-sent, mapped, committed
int RunLoop(const HolderOptions& options);     // take and drop until killed
int RunVictim(const HolderOptions& options);   // takes the whole pool and looks for anybody's bytes
int RunHostile(const HolderOptions& options);  // each kind of misbehaviour
bool IsHostileKind(const std::string& what);

}  // namespace ubd::testing

#endif  // UBD_TESTS_CRASH_HOLDER_H_
