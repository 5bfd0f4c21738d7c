// One process fills a lease, another reads it in place: the bytes are not copied, only a ticket of 32 hex digits
// travels.
//   share_between_processes [RUNTIME_DIR]
// Runs itself a second time as the consumer (`share_between_processes --consume RUNTIME_DIR`, ticket on stdin): a
// process that is connected to ubd must exec before its child can connect too.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "ub/client.h"

namespace {

constexpr std::string_view kMessage = "written once, read in place";

int Fail(std::string_view what, const absl::Status& status) {
  std::cerr << what << ": " << status.message() << "\n";
  return 1;
}

int Consume(const std::string& dir) {
  std::string text;
  std::cin >> text;
  auto ticket = ub::Ticket::Parse(text);
  if (!ticket.ok()) return Fail("ticket", ticket.status());
  auto client = ub::Client::Connect({.runtime_dir = dir, .name = "consumer"});
  if (!client.ok()) return Fail("cannot connect", client.status());
  auto lease = (*client)->Attach(*ticket);
  if (!lease.ok()) return Fail("cannot attach", lease.status());
  std::string_view seen(reinterpret_cast<const char*>(lease->data()), kMessage.size());
  std::cout << "consumer read: " << seen << "\n";
  return seen == kMessage ? 0 : 1;
}

// Starts this program again as the consumer and hands it the ticket.
int RunConsumer(const char* self, const std::string& dir, const std::string& ticket) {
  int pipe[2];
  if (::pipe(pipe) != 0) return 1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe[0]);
  posix_spawn_file_actions_addclose(&actions, pipe[1]);
  std::string consume = "--consume";
  std::string name = self;
  std::string dir_argument = dir;
  char* arguments[] = {name.data(), consume.data(), dir_argument.data(), nullptr};
  pid_t child = 0;
  int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[0]);
  bool handed = failed == 0 && ::write(pipe[1], ticket.data(), ticket.size()) == static_cast<ssize_t>(ticket.size());
  ::close(pipe[1]);
  int status = 1;
  if (failed == 0) ::waitpid(child, &status, 0);
  return handed && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int Produce(const char* self, const std::string& dir) {
  auto client = ub::Client::Connect({.runtime_dir = dir, .name = "producer"});
  if (!client.ok()) return Fail("cannot connect", client.status());
  auto lease = (*client)->Acquire({.bytes = ub::Bytes(kMessage.size()), .wait = absl::Seconds(1)});
  if (!lease.ok()) return Fail("no memory", lease.status());
  std::memcpy(lease->data(), kMessage.data(), kMessage.size());
  auto ticket = lease->Share({.access = ub::Access::kReadOnly, .uid = ub::Uid(::getuid())});
  if (!ticket.ok()) return Fail("cannot share", ticket.status());
  int result = RunConsumer(self, dir, ticket->text());
  absl::Status released = lease->Release();
  return released.ok() ? result : Fail("release", released);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--consume") return Consume(argv[2]);
  return Produce(argv[0], argc > 1 ? argv[1] : "");
}
