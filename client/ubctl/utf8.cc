#include "client/ubctl/utf8.h"

#include <cstdint>

namespace ub::ctl {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: not UTF-8 here
};

CodePoint Decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t value = first & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, bytes};
}

bool Dangerous(uint32_t c) {
  bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  bool turns_text = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
  return control || turns_text || c == 0x2028 || c == 0x2029;
}

template <class Keep>
std::string Map(std::string_view text, Keep keep) {
  std::string mapped;
  while (!text.empty()) {
    CodePoint c = Decode(text);
    size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    mapped += c.bytes == 0 ? kReplacement : keep(c.value) ? text.substr(0, bytes) : std::string_view("?");
    text.remove_prefix(bytes);
  }
  return mapped;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  return Map(text, [](uint32_t) { return true; });
}

std::string Printable(std::string_view text) {
  return Map(text, [](uint32_t c) { return !Dangerous(c); });
}

size_t Columns(std::string_view utf8) {
  size_t columns = 0;
  for (char c : utf8) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

}  // namespace ub::ctl
