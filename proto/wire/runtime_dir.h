// Where daemon and clients meet: one rule for both.
#ifndef UB_WIRE_RUNTIME_DIR_H_
#define UB_WIRE_RUNTIME_DIR_H_

#include <string>
#include <string_view>

namespace ub {

// `given` if not empty; else $UB_RUNTIME_DIR; else /run/ubd for root, else $XDG_RUNTIME_DIR/ubd, else /tmp/ubd-UID. Not
// checked or created here.
std::string RuntimeDir(std::string_view given);

inline constexpr std::string_view kRpcSocketName = "ubd.sock";
inline constexpr std::string_view kLifelineSocketName = "lifeline.sock";
inline constexpr std::string_view kLockFileName = "ubd.lock";

}  // namespace ub

#endif  // UB_WIRE_RUNTIME_DIR_H_
