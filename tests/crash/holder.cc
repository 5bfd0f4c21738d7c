#include "tests/crash/holder.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace ubd::testing {

void Say(const std::string& line) { std::cout << line << std::endl; }

std::string Hear() {
  std::string line;
  if (!std::getline(std::cin, line)) std::_Exit(0);
  return line;
}

void Fail(const std::string& why) {
  std::cerr << "holder: " << why << std::endl;
  std::_Exit(1);
}

std::byte* MapBlock(int fd, const HolderOptions& options) {
  void* at = mmap(nullptr, options.block_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) Fail(std::string("mmap: ") + std::strerror(errno));
  return static_cast<std::byte*>(at);
}

HeldLease TakeLease(RawClient& client, const HolderOptions& options, uint64_t request, absl::Duration wait) {
  auto lease = client.Acquire(options.bytes, request, wait);
  if (!lease.ok()) Fail("Acquire: " + lease.status().ToString());
  auto grant = client.ReadGrant();
  if (!grant.ok()) Fail("grant: " + grant.status().ToString());
  HeldLease held{*lease, std::move(grant->fds), {}};
  for (const ub::UniqueFd& fd : held.fds) held.maps.push_back(MapBlock(fd.get(), options));
  return held;
}

void Unmap(HeldLease& held, const HolderOptions& options) {
  for (std::byte* at : held.maps) munmap(at, options.block_bytes);
  held.maps.clear();
  held.fds.clear();
}

void Fill(const HeldLease& held, const HolderOptions& options, int byte) {
  for (std::byte* at : held.maps) std::memset(at, byte, options.block_bytes);
}

}  // namespace ubd::testing
