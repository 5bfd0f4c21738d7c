// A JSON array on standard output that grows while it is read: one element at a time, each flushed. Closed, it is one
// document. Not thread-safe.
#ifndef UB_UBCTL_JSON_ARRAY_H_
#define UB_UBCTL_JSON_ARRAY_H_

#include <google/protobuf/message.h>

#include "client/ubctl/json.h"
#include "client/ubctl/output.h"

namespace ub::ctl {

class JsonArray {
 public:
  // False: stdout does not take it.
  bool Add(const google::protobuf::Message& element) {
    std::string text = MessageToJson(element);
    text.pop_back();  // its line end: a comma may follow
    bool written = WriteOut((open_ ? ",\n" : "[\n") + text);
    open_ = true;
    return written;
  }
  void Close() { WriteOut(open_ ? "\n]\n" : "[]\n"); }

 private:
  bool open_ = false;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_JSON_ARRAY_H_
