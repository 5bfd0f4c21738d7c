// Where daemon and clients meet: one rule for both.
#ifndef UB_WIRE_RUNTIME_DIR_H_
#define UB_WIRE_RUNTIME_DIR_H_

#include <string>
#include <string_view>

namespace ub {

// `given` if not empty; else $UB_RUNTIME_DIR; else /run/ubd for root, else $XDG_RUNTIME_DIR/ubd, else /tmp/ubd-UID. Not
// checked or created here.
std::string RuntimeDir(std::string_view given);

inline constexpr std::string_view kSystemRuntimeDir = "/run/ubd";

// For clients: the same, but where neither `given` nor $UB_RUNTIME_DIR says so and the user has no daemon of his own,
// the system's, if there is one.
std::string ClientRuntimeDir(std::string_view given, std::string_view system_dir = kSystemRuntimeDir);

inline constexpr std::string_view kRpcSocketName = "ubd.sock";
inline constexpr std::string_view kLifelineSocketName = "lifeline.sock";
inline constexpr std::string_view kLockFileName = "ubd.lock";

}  // namespace ub

#endif  // UB_WIRE_RUNTIME_DIR_H_
