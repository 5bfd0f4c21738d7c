// Text from elsewhere, made safe to print. Pure.
#ifndef UB_UBCTL_UTF8_H_
#define UB_UBCTL_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace ub::ctl {

// The same text with every byte that is no UTF-8 (overlong forms and surrogates included) replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

// For terminals: valid UTF-8 in which control characters (C0, DEL, C1) and the marks that turn the direction of text
// are '?'. A process chooses its own name; it must not move the operator's cursor with it.
std::string Printable(std::string_view text);

// How many columns the text takes: code points, as no name of ours is wide.
size_t Columns(std::string_view utf8);

}  // namespace ub::ctl

#endif  // UB_UBCTL_UTF8_H_
