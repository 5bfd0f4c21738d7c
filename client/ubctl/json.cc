#include "client/ubctl/json.h"

#include <array>
#include <charconv>
#include <cmath>

#include "client/ubctl/utf8.h"
#include "proto/wire/error.h"

namespace ub::ctl {

void JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::Close(char bracket) {
  --depth_;
  if (!first_) {
    text_ += '\n';
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
  }
  text_ += bracket;
  first_ = false;
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  text_ += first_ ? "\n" : ",\n";
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
  first_ = false;
}

void JsonWriter::Raw(std::string_view value) {
  Separate();
  text_ += value;
}

void JsonWriter::Key(std::string_view name) {
  Separate();
  text_ += JsonString(name);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::String(std::string_view value) { Raw(JsonString(value)); }
void JsonWriter::Int(int64_t value) { Raw(std::to_string(value)); }
void JsonWriter::Uint(uint64_t value) { Raw(std::to_string(value)); }
void JsonWriter::Bool(bool value) { Raw(value ? "true" : "false"); }
void JsonWriter::Null() { Raw("null"); }

void JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  std::array<char, 32> digits;
  auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return Null();
  Raw(std::string_view(digits.data(), static_cast<size_t>(end - digits.data())));
}

std::string JsonString(std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (char c : ValidUtf8(value)) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) {
          quoted += "\\u00";
          quoted += kHex[byte >> 4];
          quoted += kHex[byte & 15];
        } else {
          quoted += c;
        }
    }
  }
  return quoted + '"';
}

std::string ErrorToJson(const absl::Status& status) {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("error");
  writer.BeginObject();
  writer.Key("code");
  writer.String(absl::StatusCodeToString(status.code()));
  writer.Key("reason");
  std::string_view reason = ReasonName(ReasonOf(status));
  reason.empty() ? writer.Null() : writer.String(reason);
  writer.Key("message");
  writer.String({status.message().data(), status.message().size()});
  writer.Key("details");
  writer.BeginObject();
  for (const auto& [name, value] : DetailsOf(status)) {
    writer.Key(name);
    writer.String(value);
  }
  writer.EndObject();
  writer.EndObject();
  writer.EndObject();
  return writer.text() + '\n';
}

std::string UsageErrorToJson(std::string_view message) {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("error");
  writer.BeginObject();
  writer.Key("code");
  writer.String("INVALID_ARGUMENT");
  writer.Key("reason");
  writer.String("USAGE");
  writer.Key("message");
  writer.String(message);
  writer.Key("details");
  writer.BeginObject();
  writer.EndObject();
  writer.EndObject();
  writer.EndObject();
  return writer.text() + '\n';
}

}  // namespace ub::ctl
