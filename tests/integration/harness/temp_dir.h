// A private directory under /tmp that goes away with its object. Not thread-safe.
#ifndef UBD_TESTS_HARNESS_TEMP_DIR_H_
#define UBD_TESTS_HARNESS_TEMP_DIR_H_

#include <sys/types.h>

#include <string>
#include <string_view>

namespace ubd::testing {

class TempDir {
 public:
  // Mode 0700 unless given otherwise. Ends the program where none can be made: no test makes sense then.
  explicit TempDir(mode_t mode = 0700);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Path of `name` in it.
  std::string operator/(std::string_view name) const;
  // Writes a file in it and returns its path.
  std::string Write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
};

// The whole file; empty where there is none.
std::string ReadFile(const std::string& path);

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_TEMP_DIR_H_
