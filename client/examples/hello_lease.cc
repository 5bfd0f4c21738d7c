// Leases memory, writes to it, gives it back, and gets it again from the cache without a call.
//   hello_lease [RUNTIME_DIR]
#include <cstring>
#include <iostream>

#include "ub/client.h"

int main(int argc, char** argv) {
  auto client = ub::Client::Connect({.runtime_dir = argc > 1 ? argv[1] : "", .name = "hello_lease"});
  if (!client.ok()) {
    std::cerr << "cannot connect: " << client.status().message() << "\n";
    return 1;
  }
  auto lease = (*client)->Acquire({.bytes = ub::MiB(1), .wait = absl::Seconds(1)});
  if (!lease.ok()) {
    std::cerr << "no memory: " << lease.status().message() << "\n";
    return 1;
  }
  std::memset(lease->data(), 'u', lease->size());
  std::cout << "lease " << lease->id() << " of pool " << lease->pool() << ": " << lease->size()
            << " bytes, first UB address " << *lease->ub_addr(ub::Bytes(0)) << "\n";
  if (absl::Status released = lease->Release(); !released.ok()) {
    std::cerr << "release: " << released.message() << "\n";
    return 1;
  }
  auto again = (*client)->Acquire({.bytes = ub::MiB(1)});
  if (!again.ok()) {
    std::cerr << "no memory: " << again.status().message() << "\n";
    return 1;
  }
  std::cout << "again: lease " << again->id() << ", calls made " << (*client)->stats().rpcs
            << ", served from the cache " << (*client)->stats().cache_hits << "\n";
  return 0;
}
