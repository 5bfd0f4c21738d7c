// From the parsed message to Config: defaults applied, every value checked, each fault reported at its key. One
// function per part.
#ifndef UBD_CONFIG_READ_H_
#define UBD_CONFIG_READ_H_

#include "daemon/config/config.h"
#include "daemon/config/section.h"
#include "ub/v1/config.pb.h"

namespace ubd {

// The largest block, and the size that every block is a multiple of.
inline constexpr Bytes kBlockUnit = ub::MiB(2);
inline constexpr Bytes kLargestBlock = ub::GiB(1);

// With `mistyped` a missing key is no fault: an unknown key, reported already, was probably it.
void ReadPools(const ub::v1::Config& from, const Section& root, bool mistyped, Config* config);
void ReadQuota(const ub::v1::Config& from, const Section& root, bool mistyped, Config* config);
void ReadLease(const ub::v1::Config& from, const Section& root, Config* config);
void ReadSocket(const ub::v1::Config& from, const Section& root, Config* config);
void ReadSession(const ub::v1::Config& from, const Section& root, Config* config);
// engine, path.
void ReadEngine(const ub::v1::Config& from, const Section& root, Config* config);
// admin, metrics, log, shutdown.
void ReadService(const ub::v1::Config& from, const Section& root, Config* config);

}  // namespace ubd

#endif  // UBD_CONFIG_READ_H_
