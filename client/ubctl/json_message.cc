// The half of json.h that walks messages.
#include <google/protobuf/descriptor.h>

#include "client/ubctl/json.h"

namespace ub::ctl {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr double kNanosPerSecond = 1e9;

std::string Hex(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

void WriteText(const FieldDescriptor& field, const std::string& value, JsonWriter& writer) {
  writer.String(field.type() == FieldDescriptor::TYPE_BYTES ? Hex(value) : value);
}

// One element of a repeated field.
void WriteElement(const Message& message, const FieldDescriptor& field, int index, JsonWriter& writer) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return writer.Int(reflection.GetRepeatedInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return writer.Int(reflection.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return writer.Uint(reflection.GetRepeatedUInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return writer.Uint(reflection.GetRepeatedUInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return writer.Double(reflection.GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return writer.Double(reflection.GetRepeatedFloat(message, &field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return writer.Bool(reflection.GetRepeatedBool(message, &field, index));
    case FieldDescriptor::CPPTYPE_ENUM:
      return writer.String(reflection.GetRepeatedEnum(message, &field, index)->name());
    case FieldDescriptor::CPPTYPE_STRING:
      return WriteText(field, reflection.GetRepeatedString(message, &field, index), writer);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WriteMessage(reflection.GetRepeatedMessage(message, &field, index), writer);
  }
}

void WriteSingle(const Message& message, const FieldDescriptor& field, JsonWriter& writer) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return writer.Int(reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return writer.Int(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return writer.Uint(reflection.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return writer.Uint(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return writer.Double(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return writer.Double(reflection.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return writer.Bool(reflection.GetBool(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return writer.String(reflection.GetEnum(message, &field)->name());
    case FieldDescriptor::CPPTYPE_STRING:
      return WriteText(field, reflection.GetString(message, &field), writer);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WriteMessage(reflection.GetMessage(message, &field), writer);
  }
}

// The value of a map entry under its key; keys are text or numbers.
void WriteMap(const Message& message, const FieldDescriptor& field, JsonWriter& writer) {
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& key = *field.message_type()->map_key();
  writer.BeginObject();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    JsonWriter name;
    WriteSingle(entry, key, name);
    bool quoted = key.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    writer.Key(quoted ? entry.GetReflection()->GetString(entry, &key) : name.text());
    WriteSingle(entry, *field.message_type()->map_value(), writer);
  }
  writer.EndObject();
}

void WriteField(const Message& message, const FieldDescriptor& field, JsonWriter& writer) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_map()) return WriteMap(message, field, writer);
  if (field.is_repeated()) {
    writer.BeginArray();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) WriteElement(message, field, i, writer);
    return writer.EndArray();
  }
  if (field.has_presence() && !reflection.HasField(message, &field)) return writer.Null();
  WriteSingle(message, field, writer);
}

}  // namespace

void WriteMessage(const Message& message, JsonWriter& writer) {
  writer.BeginObject();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    writer.Key(field.name());
    WriteField(message, field, writer);
    if (field.name() == "age_ns" && field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      writer.Key("age");
      writer.Double(static_cast<double>(message.GetReflection()->GetUInt64(message, &field)) / kNanosPerSecond);
    }
  }
  writer.EndObject();
}

std::string MessageToJson(const Message& message) {
  JsonWriter writer;
  WriteMessage(message, writer);
  return writer.text() + '\n';
}

}  // namespace ub::ctl
