// What this process writes to stderr while the object lives, line by line.
#ifndef UBD_TESTS_TELEMETRY_CAPTURED_LOG_H_
#define UBD_TESTS_TELEMETRY_CAPTURED_LOG_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace ubd {

class CapturedLog {
 public:
  CapturedLog() : saved_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)), file_(memfd_create("log", MFD_CLOEXEC)) {
    fcntl(file_, F_SETFL, O_APPEND);  // a memfd's position is not moved atomically by several threads
    dup2(file_, STDERR_FILENO);
  }
  ~CapturedLog() { Restore(); }
  std::vector<std::string> Lines() {
    Restore();
    std::string text;
    char buffer[65536];
    off_t at = 0;
    for (ssize_t got; (got = pread(file_, buffer, sizeof(buffer), at)) > 0; at += got) {
      text.append(buffer, static_cast<size_t>(got));
    }
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.empty()) return {};
    return absl::StrSplit(text, '\n');
  }

 private:
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  int saved_;
  int file_;
};

}  // namespace ubd

#endif  // UBD_TESTS_TELEMETRY_CAPTURED_LOG_H_
