#include "daemon/rpc/reflection_answers.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/status_code_enum.h>

#include <set>
#include <vector>

namespace ubd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr const char* kServices[] = {"ub.v1.Broker", "ub.v1.Admin", "grpc.health.v1.Health",
                                     "grpc.reflection.v1alpha.ServerReflection"};

void NotFound(ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message("no such file, symbol, type or extension is served here");
}

// The file and, once each, whatever it imports: a client needs all of them to build its own descriptors.
void AddFile(const FileDescriptor* file, std::set<const FileDescriptor*>& added, ServerReflectionResponse& response) {
  if (!added.insert(file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) AddFile(file->dependency(i), added, response);
}

void AnswerFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr) return NotFound(response);
  std::set<const FileDescriptor*> added;
  AddFile(file, added, response);
}

void AnswerExtension(const grpc::reflection::v1alpha::ExtensionRequest& request, ServerReflectionResponse& response) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  const Descriptor* type = pool->FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* field = nullptr;
  if (type != nullptr) field = pool->FindExtensionByNumber(type, request.extension_number());
  AnswerFile(field == nullptr ? nullptr : field->file(), response);
}

void AnswerExtensionNumbers(const std::string& name, ServerReflectionResponse& response) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  const Descriptor* type = pool->FindMessageTypeByName(name);
  if (type == nullptr) return NotFound(response);
  std::vector<const FieldDescriptor*> extensions;
  pool->FindAllExtensions(type, &extensions);
  response.mutable_all_extension_numbers_response()->set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) {
    response.mutable_all_extension_numbers_response()->add_extension_number(extension->number());
  }
}

}  // namespace

ServerReflectionResponse AnswerReflection(const ServerReflectionRequest& request) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      AnswerFile(pool->FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      AnswerFile(pool->FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      AnswerExtension(request.file_containing_extension(), response);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const char* name : kServices) response.mutable_list_services_response()->add_service()->set_name(name);
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return response;
}

}  // namespace ubd
