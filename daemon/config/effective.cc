#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "daemon/config/message.h"

namespace ubd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// `index` counts the values of a repeated key; -1 for another.
std::string Scalar(const Message& message, const FieldDescriptor* field, int index) {
  std::string text;
  TextFormat::Printer().PrintFieldValueToString(message, field, index, &text);
  return text;
}

// Every key of the schema, in its order; one without a value as a comment, so that the reader sees that it exists.
void Print(const Message& message, const std::string& indent, std::string* out) {
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    bool is_section = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    int count = field->is_repeated() ? reflection->FieldSize(message, field) : reflection->HasField(message, field);
    if (count == 0) {
      absl::StrAppend(out, indent, "# ", field->name(), is_section ? " { … }: none\n" : ": not set\n");
    }
    for (int n = 0; !is_section && n < count; ++n) {
      absl::StrAppend(out, indent, field->name(), ": ", Scalar(message, field, field->is_repeated() ? n : -1), "\n");
    }
    for (int n = 0; is_section && n < count; ++n) {
      absl::StrAppend(out, indent, field->name(), " {\n");
      Print(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, n)
                                 : reflection->GetMessage(message, field),
            indent + "  ", out);
      absl::StrAppend(out, indent, "}\n");
    }
  }
}

}  // namespace

std::string EffectiveConfig(const Config& config) {
  std::string text;
  Print(ToMessage(config), "", &text);
  return text;
}

}  // namespace ubd
