// JSON for --json: a small writer, and a printer that walks a protobuf message by reflection.
//
// The printer differs from protobuf's own JSON mapping where monitoring needs it to: names are snake_case as in the
// .proto, 64-bit integers are numbers, a field that was never set (`optional`, or a message) is null, an empty list is
// [], and every other field is always there. A field `age_ns` is also printed as `age`, in seconds. Text that is not
// UTF-8 is repaired with U+FFFD. Not thread-safe.
#ifndef UB_UBCTL_JSON_H_
#define UB_UBCTL_JSON_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace ub::ctl {

// Builds one document, two spaces a level. Commas and line ends come by themselves; Begin and End must pair up.
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view name);
  void String(std::string_view value);
  void Int(int64_t value);
  void Uint(uint64_t value);
  // NaN and infinities are null: JSON has no word for them.
  void Double(double value);
  void Bool(bool value);
  void Null();
  const std::string& text() const { return text_; }

 private:
  void Open(char bracket);
  void Close(char bracket);
  // What stands before a value: a comma, a line end, or nothing after a key.
  void Separate();
  void Raw(std::string_view value);

  std::string text_;
  int depth_ = 0;
  bool first_ = true;  // nothing in the present object or array yet
  bool after_key_ = false;
};

// One quoted and escaped JSON string.
std::string JsonString(std::string_view value);

void WriteMessage(const google::protobuf::Message& message, JsonWriter& writer);

// The whole document for one message, ended by a line end.
std::string MessageToJson(const google::protobuf::Message& message);

// {"error":{"code":…,"reason":…,"message":…,"details":{…}}} and a line end. `reason` is null where the status has none.
std::string ErrorToJson(const absl::Status& status);
// The same for a command line that could not be understood.
std::string UsageErrorToJson(std::string_view message);

}  // namespace ub::ctl

#endif  // UB_UBCTL_JSON_H_
