#include "client/ubctl/bench/private_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/mono_time.h"
#include "client/ubctl/bench/samples.h"
#include "proto/wire/unique_fd.h"
#include "ub/error.h"

namespace ub::ctl {
namespace {

constexpr int kPatienceAtEndMs = 20000;

absl::StatusOr<UniqueFd> NotifySocket(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError("the temporary directory's path is too long for a socket");
  path.copy(address.sun_path, path.size());
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoError(errno, absl::StrCat("bind ", path));
  }
  return fd;
}

absl::StatusOr<pid_t> Spawn(const std::string& ubd, const std::string& directory) {
  std::vector<std::string> words = {"ubd", "--config", directory + "/ubd.textproto", "--runtime-dir",
                                    directory + "/run"};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string notify = absl::StrCat("NOTIFY_SOCKET=", directory, "/notify");
  std::vector<char*> environment = {notify.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::string log = directory + "/log";
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = -1;
  int error = posix_spawnp(&pid, ubd.c_str(), &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoError(error, absl::StrCat("start ", ubd, " (name it with --ubd)"));
  return pid;
}

// Ok once a message says READY=1.
absl::Status AwaitReady(int notify, pid_t pid, absl::Duration patience) {
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  for (Deadline deadline = Deadline::After(patience); !deadline.passed();) {
    std::array<pollfd, 2> entries = {pollfd{.fd = notify, .events = POLLIN, .revents = 0},
                                     pollfd{.fd = process.get(), .events = POLLIN, .revents = 0}};
    if (poll(entries.data(), entries.size(), deadline.poll_ms()) <= 0) continue;
    if (entries[0].revents != 0) {
      std::array<char, 4096> message;
      ssize_t got = recv(notify, message.data(), message.size(), MSG_DONTWAIT);
      if (got > 0 &&
          std::string_view(message.data(), static_cast<size_t>(got)).find("READY=1") != std::string_view::npos)
        return absl::OkStatus();
    } else if (entries[1].revents != 0) {
      return absl::AbortedError("the private ubd ended before it was ready");
    }
  }
  return absl::DeadlineExceededError("the private ubd was not ready in time");
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

absl::StatusOr<PrivateDaemon> PrivateDaemon::Start(const std::string& ubd, const std::string& config,
                                                   absl::Duration patience) {
  std::string pattern = "/tmp/ubctl-bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return ErrnoError(errno, "make a directory in /tmp");
  PrivateDaemon daemon;
  daemon.directory_ = pattern;
  std::ofstream(daemon.directory_ + "/ubd.textproto") << config;
  std::filesystem::create_directory(daemon.runtime_dir());
  std::filesystem::permissions(daemon.runtime_dir(), std::filesystem::perms::owner_all);
  auto notify = NotifySocket(daemon.directory_ + "/notify");
  if (!notify.ok()) return notify.status();
  uint64_t before = NowNs();
  auto pid = Spawn(ubd, daemon.directory_);
  if (!pid.ok()) return pid.status();
  daemon.pid_ = *pid;
  absl::Status ready = AwaitReady(notify->get(), *pid, patience);
  if (!ready.ok()) {
    return absl::AbortedError(absl::StrCat(std::string(ready.message()), ": ", LastLine(daemon.directory_ + "/log")));
  }
  daemon.boot_ = absl::Nanoseconds(NowNs() - before);
  return daemon;
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : directory_(std::move(other.directory_)), pid_(std::exchange(other.pid_, -1)), boot_(other.boot_) {
  other.directory_.clear();
}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    pollfd entry = {.fd = process.get(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, kPatienceAtEndMs) <= 0) kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  std::error_code ignored;  // what is left then is a few files in /tmp
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

std::string FindUbd(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* beside : {"ubd", "../../daemon/ubd", "../sbin/ubd"}) {
    std::filesystem::path candidate = here / beside;
    if (std::filesystem::is_regular_file(candidate, error)) return candidate.string();
  }
  return "ubd";
}

}  // namespace ub::ctl
