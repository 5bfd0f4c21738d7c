#include "daemon/rpc/text.h"

#include <cstdint>
#include <string_view>

namespace ubd {
namespace {

// The length of the character that starts at text[0]; 0 if it is malformed, overlong, a surrogate or beyond U+10FFFF.
size_t CharacterLength(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool no_character = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff;
  return overlong || no_character ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string CleanText(std::string text) {
  bool utf8 = IsUtf8(text);
  for (char& c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) c = '?';
  }
  return text;
}

}  // namespace ubd
