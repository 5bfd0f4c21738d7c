// The configuration that a ubd without --config runs on: config/embedded.textproto, compiled in.
#ifndef UBD_CONFIG_EMBEDDED_H_
#define UBD_CONFIG_EMBEDDED_H_

#include <string_view>

namespace ubd {

std::string_view EmbeddedConfigText();
// What ParseConfig is given as its name.
inline constexpr std::string_view kEmbeddedConfigName = "(embedded)";

}  // namespace ubd

#endif  // UBD_CONFIG_EMBEDDED_H_
