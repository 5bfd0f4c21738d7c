// What the tests of files and rings share: a folder on a real disk, made trees of /proc and /sys, another user.
#ifndef UBD_TESTS_UNIT_ENGINE_FILE_TESTING_H_
#define UBD_TESTS_UNIT_ENGINE_FILE_TESTING_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "daemon/engine/file_target.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

// A folder under $TMPDIR (else /tmp) that everybody may enter; gone with its object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, with the folders above it.
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0644) const;
  // "" where files in it can be targets and direct, else why not.
  std::string WhyNotDirect() const;

 private:
  std::string path_;
};
#define SKIP_WITHOUT_DIRECT(folder) \
  if (std::string why = (folder).WhyNotDirect(); !why.empty()) GTEST_SKIP() << why

// Text of `bytes` bytes in which every 8 bytes say where they are.
std::string Pattern(size_t bytes, uint64_t seed = 1);

ub::UniqueFd OpenFile(const std::string& path, int flags);

// Page-aligned memory, filled with zeros.
class Memory4K {
 public:
  explicit Memory4K(size_t bytes);
  ~Memory4K();
  Memory4K(const Memory4K&) = delete;
  Memory4K& operator=(const Memory4K&) = delete;
  char* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  char* data_;
  size_t bytes_;
};

// Runs `check` in a child process, as nobody where `as_nobody`; what it returns, or how the child died. "" is success.
std::string InChild(bool as_nobody, const std::function<std::string()>& check);

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_ENGINE_FILE_TESTING_H_
