#include "tests/integration/harness/temp_dir.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace ubd::testing {

TempDir::TempDir(mode_t mode) : path_("/tmp/ubd-test-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr || chmod(path_.c_str(), mode) != 0) {
    std::perror("a directory in /tmp for the test");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

std::string TempDir::Write(std::string_view name, std::string_view text) const {
  std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace ubd::testing
