#include "client/ubctl/bench/child_protocol.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "ub/error.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kValues = 1;
constexpr uint64_t kFailure = 2;

absl::Status Send(int socket, const std::vector<uint64_t>& packet) {
  size_t bytes = packet.size() * sizeof(uint64_t);
  if (send(socket, packet.data(), bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes)) return absl::OkStatus();
  return ErrnoError(errno, "report to the parent");
}

}  // namespace

absl::Status ReportValues(int socket, const std::vector<uint64_t>& values) {
  std::vector<uint64_t> packet = {kValues};
  packet.insert(packet.end(), values.begin(), values.end());
  return Send(socket, packet);
}

absl::Status ReportFailure(int socket, const absl::Status& status) {
  std::string text(status.message().data(), status.message().size());
  std::vector<uint64_t> packet(1 + (text.size() + 8) / 8, 0);
  packet[0] = kFailure;
  std::memcpy(&packet[1], text.data(), text.size());
  return Send(socket, packet);
}

absl::StatusOr<std::vector<uint64_t>> AwaitReport(int socket) {
  std::vector<uint64_t> packet(1 + kMostReported, 0);
  ssize_t got = 0;
  do {
    got = recv(socket, packet.data(), packet.size() * sizeof(uint64_t), 0);
  } while (got < 0 && errno == EINTR);
  if (got < static_cast<ssize_t>(sizeof(uint64_t))) return absl::AbortedError("a child of the bench is gone");
  packet.resize(static_cast<size_t>(got) / sizeof(uint64_t));
  if (packet[0] == kFailure) {
    packet.push_back(0);
    return absl::AbortedError(absl::StrCat("a child of the bench failed: ", reinterpret_cast<const char*>(&packet[1])));
  }
  packet.erase(packet.begin());
  return packet;
}

void AwaitHangUp(int socket) {
  char byte = 0;
  while (recv(socket, &byte, 1, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace ub::ctl
