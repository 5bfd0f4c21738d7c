// The page cache of a file: dropped, and looked at. A comparison of paths is worth nothing when one side reads from
// memory what the other fetches from the device.
#ifndef UB_UBCTL_LOAD_COLD_CACHE_H_
#define UB_UBCTL_LOAD_COLD_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ub::ctl {

// The share of the file's first `bytes` that is in the page cache; nothing when the kernel does not say. It tells only
// those who own the file or may write to it: for others everything looks cached.
std::optional<double> CachedShare(int fd, uint64_t bytes);

// Writes back and drops the first `bytes`. "" when hardly anything is left, else what is left and why.
std::string DropCache(int fd, uint64_t bytes);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_COLD_CACHE_H_
