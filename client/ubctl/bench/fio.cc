#include "client/ubctl/bench/fio.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "client/ubctl/report.pb.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {
namespace {

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& words) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(words[0], " is not installed"));
  if (error != 0) return ErrnoError(error, absl::StrCat("start ", words[0]));
  in.reset();
  std::string text = ReadAll(out.get());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::AbortedError(absl::StrCat(words[0], " failed: ", text.substr(0, text.find('\n'))));
  }
  return text;
}

absl::StatusOr<FioResult> ParseFio(const std::string& output) {
  size_t begin = output.find('{');
  FioOutput parsed;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  bool understood = begin != std::string::npos &&
                    google::protobuf::util::JsonStringToMessage(output.substr(begin), &parsed, options).ok() &&
                    parsed.jobs_size() == 1;
  if (!understood) return absl::AbortedError("fio's output is not understood: is it older than 3.0?");
  const FioOutput::Job& job = parsed.jobs(0);
  if (job.error() != 0) return ErrnoError(job.error(), "fio's read");
  if (job.read().bw_bytes() <= 0) return absl::AbortedError("fio read nothing");
  FioResult result;
  result.bytes_per_s = job.read().bw_bytes();
  if (job.read().io_bytes() > 0) {
    double busy_ms = (job.usr_cpu() + job.sys_cpu()) / 100 * static_cast<double>(job.read().runtime());
    result.cpu_s_per_gb = busy_ms * 1e6 / static_cast<double>(job.read().io_bytes());
  }
  return result;
}

absl::StatusOr<FioResult> RunFio(int fd, const LoadPlan& plan, absl::Duration time) {
  auto output = OutputOf({"fio", "--name=ubctl", "--readonly", "--ioengine=io_uring", "--fixedbufs=1", "--direct=1",
                          "--invalidate=0", absl::StrCat("--rw=", plan.random ? "randread" : "read"),
                          absl::StrCat("--bs=", plan.chunk.count()), absl::StrCat("--iodepth=", plan.depth),
                          absl::StrCat("--filename=/proc/", getpid(), "/fd/", fd), "--time_based",
                          absl::StrCat("--runtime=", absl::ToInt64Milliseconds(time), "ms"), "--output-format=json"});
  if (!output.ok()) return output.status();
  return ParseFio(*output);
}

}  // namespace ub::ctl
