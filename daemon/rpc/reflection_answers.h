// The answers of the reflection protocol, out of the descriptors compiled into this program. Pure; the caller is
// hostile: any request gets an answer.
#ifndef UBD_RPC_REFLECTION_ANSWERS_H_
#define UBD_RPC_REFLECTION_ANSWERS_H_

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace ubd {

grpc::reflection::v1alpha::ServerReflectionResponse AnswerReflection(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

}  // namespace ubd

#endif  // UBD_RPC_REFLECTION_ANSWERS_H_
