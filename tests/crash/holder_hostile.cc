// Clients that misuse what they were given. Each fills its lease with 0xaa, does its mischief, gives the lease back (or
// not), says "done", and on "again" uses whatever it has kept once more.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "proto/wire/fd_message.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/runtime_dir.h"
#include "tests/crash/holder.h"

namespace ubd::testing {
namespace {

constexpr int kOld = 0xaa;
constexpr int kNew = 0xbb;

struct Scene {
  const HolderOptions& options;
  RawClient& client;
  HeldLease held;

  void GiveBack() {
    uint64_t id = held.lease.id();
    Unmap(held, options);
    if (grpc::Status s = client.Release(id); !s.ok()) Fail("release: " + s.error_message());
  }
  // What `fd` still reaches gets new bytes.
  void Scribble(int fd) {
    std::byte* at = MapBlock(fd, options);
    std::memset(at, kNew, options.block_bytes);
    munmap(at, options.block_bytes);
  }
  void Done() { Say("done"); }
  // Waits for "again"; anything else ends the program.
  void Again() {
    if (Hear() != "again") std::_Exit(0);
  }
};

void Punch(Scene& s) {
  for (const ub::UniqueFd& fd : s.held.fds) {
    fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(s.options.block_bytes / 2));
  }
  s.GiveBack();
  s.Done();
  s.Again();
}

// A child goes on with the mapping after the parent has given the lease back.
void ForkKeep(Scene& s) {
  int to_child[2], to_parent[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(to_parent, O_CLOEXEC) != 0) Fail("pipe");
  if (fork() == 0) {
    char go;
    close(to_child[1]);
    if (read(to_child[0], &go, 1) == 1) {
      for (std::byte* at : s.held.maps) std::memset(at, kNew, s.options.block_bytes);
      if (write(to_parent[1], "w", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(to_child[0]);
  s.GiveBack();
  s.Done();
  s.Again();
  char written;
  if (write(to_child[1], "g", 1) != 1 || read(to_parent[0], &written, 1) != 1) Fail("the child is gone");
}

// Becomes another program, with the block's descriptors still open there and the lifeline closed by exec.
void Exec(Scene& s) {
  std::string fd = std::to_string(s.held.fds.front().get());
  for (const ub::UniqueFd& one : s.held.fds) fcntl(one.get(), F_SETFD, 0);
  std::string script =
      "echo done; while read word; do head -c 4096 /dev/zero | tr '\\0' '\\273' >&" + fd + "; echo again; done";
  execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
  Fail("execl");
}

// The only descriptor lies in a socket's queue when the lease is given back.
void HideFd(Scene& s) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) Fail("socketpair");
  std::byte one{1};
  int fd = s.held.fds.front().get();
  if (!ub::wire::SendPacket(pair[0], {&one, 1}, {&fd, 1}).ok()) Fail("hiding the fd");
  s.GiveBack();
  s.Done();
  s.Again();
  auto packet = ub::wire::ReceivePacket(pair[1]);
  if (!packet.ok() || packet->fds.empty()) Fail("the hidden fd is gone");
  s.Scribble(packet->fds.front().get());
}

// Turns O_NONBLOCK off, O_APPEND and O_ASYNC on, on everything that it was given, and keeps one.
void ClearFlags(Scene& s) {
  int page = s.client.page_fd();
  for (int fd : {s.held.fds.front().get(), s.client.lifeline(), page}) {
    fcntl(fd, F_SETFL, 0);
    fcntl(fd, F_SETOWN, getpid());
    fcntl(fd, F_SETSIG, SIGURG);
    fcntl(fd, F_SETFL, O_APPEND | O_ASYNC | O_NONBLOCK);
    fcntl(fd, F_SETFL, 0);
  }
  int kept = fcntl(s.held.fds.front().get(), F_DUPFD_CLOEXEC, 100);
  s.GiveBack();
  s.Done();
  s.Again();
  s.Scribble(kept);
}

// Tries to change the memfd's size and seals; only that nothing works is acceptable. Then scribbles over its lease
// words.
void Truncate(Scene& s) {
  for (int fd : {s.held.fds.front().get(), s.client.page_fd()}) {
    if (ftruncate(fd, 0) == 0) Fail("could shrink");
    if (ftruncate(fd, 1 << 30) == 0) Fail("could grow");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0) Fail("could seal");
  }
  void* page = mmap(nullptr, ub::wire::kLeasePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, s.client.page_fd(), 0);
  if (page == MAP_FAILED) Fail("cannot map the lease words");
  std::memset(page, 0xff, ub::wire::kLeasePageBytes);
  s.GiveBack();
  s.Done();
  s.Again();
  std::memset(page, 0x02, ub::wire::kLeasePageBytes);
}

// Asks for lease after lease and never reads the lifeline: the descriptors stay in its queue.
void Deaf(Scene& s) {
  s.GiveBack();
  for (uint64_t request = 2; request < 30; ++request) {
    ub::v1::AcquireRequest message;
    message.set_bytes(s.options.bytes);
    message.set_request_id(request);
    ub::v1::AcquireResponse response;
    grpc::Status status =
        s.client.broker().Acquire(s.client.Context(absl::Milliseconds(200)).get(), message, &response);
    if (status.ok()) s.client.Release(response.lease().id());
  }
  s.Done();
  s.Again();
}

// Hundreds of connections that say hello for ever, send garbage, or stay silent.
void Flood(Scene& s) {
  std::vector<ub::UniqueFd> sockets;
  auto hello = ub::wire::NewFrame<ub::wire::Hello>();
  std::vector<std::byte> garbage(ub::wire::kMaxFrameBytes, std::byte{0x7f});
  for (int i = 0; i < 300; ++i) {
    auto lifeline = ConnectRaw(s.options.runtime_dir, ub::kLifelineSocketName, SOCK_SEQPACKET);
    auto rpc = ConnectRaw(s.options.runtime_dir, ub::kRpcSocketName, SOCK_STREAM);
    if (!lifeline.ok() || !rpc.ok()) break;
    for (int n = 0; n < 50; ++n) {
      if (!ub::wire::SendPacket(lifeline->get(), i % 2 == 0 ? ub::wire::AsBytes(hello) : garbage, {}).ok()) break;
    }
    if (i % 3 == 0) send(rpc->get(), garbage.data(), garbage.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    sockets.push_back(*std::move(lifeline));
    sockets.push_back(*std::move(rpc));
  }
  s.GiveBack();
  s.Done();
  s.Again();
}

// Keeps everything and ends the session: the process lives on with the mapping.
void HangUp(Scene& s) {
  s.client.TakeLifeline().reset();
  s.Done();
  s.Again();
  for (std::byte* at : s.held.maps) std::memset(at, kNew, s.options.block_bytes);
}

const std::map<std::string, std::function<void(Scene&)>>& Kinds() {
  static const auto* kinds = new std::map<std::string, std::function<void(Scene&)>>{{"punch", Punch},
                                                                                    {"fork-keep", ForkKeep},
                                                                                    {"exec", Exec},
                                                                                    {"hide-fd", HideFd},
                                                                                    {"clear-flags", ClearFlags},
                                                                                    {"truncate", Truncate},
                                                                                    {"deaf", Deaf},
                                                                                    {"flood", Flood},
                                                                                    {"hang-up", HangUp}};
  return *kinds;
}

}  // namespace

bool IsHostileKind(const std::string& what) { return Kinds().contains(what); }

int RunHostile(const HolderOptions& options) {
  auto client = RawClient::Connect(options.runtime_dir, options.what);
  if (!client.ok()) Fail("connect: " + client.status().ToString());
  Scene scene{options, **client, TakeLease(**client, options, 1, absl::Seconds(30))};
  Fill(scene.held, options, kOld);
  Kinds().at(options.what)(scene);
  Say("again");
  Hear();
  return 0;
}

}  // namespace ubd::testing
