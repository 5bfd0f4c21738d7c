// A process that uses libub as it is told, line by line on stdin; one answer line each. The tests run it as other
// users.
//   acquire BYTES [WAIT_MS] | share UID ro|rw | attach TICKET | put TEXT | get N | make-writable | alive | await-end |
//   release forget (drops the Lease) | drop-cache | stats | exec PROGRAM... | fork-sleep | quit
// Answers: "ok ..." or the reason of the error, e.g. "POOL_EMPTY".
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/mutex.h"
#include "ub/client.h"

namespace ub {
namespace {

std::string Told(const absl::Status& status) {
  return status.ok() ? "ok"
                     : absl::StrCat(std::string(ReasonName(ReasonOf(status))), " ", std::string(status.message()));
}

class Actor {
 public:
  explicit Actor(std::unique_ptr<Client> client) : client_(std::move(client)) {
    client_->OnEvent([this](const Event& event) {
      MutexLock lock(&mu_);
      events_.push_back(event.kind);
      changed_.SignalAll();
    });
  }

  std::string Do(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "acquire") return Acquire(words);
    if (what == "share") return Share(words);
    if (what == "attach") return Attach(words);
    if (what == "put" || what == "get") return Bytes_(what, words);
    if (what == "make-writable") return MakeWritable();
    if (what == "alive") return lease_.alive() ? "ok alive" : "ok ended";
    if (what == "await-end") return AwaitEnd();
    if (what == "release") return Told(lease_.Release());
    if (what == "forget") return lease_ = Lease(), "ok";
    if (what == "drop-cache") return Told(client_->DropCache());
    if (what == "stats") return Stats();
    if (what == "exec") return Exec(words);
    if (what == "fork-sleep") return ForkSleep();
    return "what?";
  }

 private:
  std::string Acquire(std::istringstream& words) {
    uint64_t bytes = 0;
    int64_t wait_ms = 0;
    words >> bytes >> wait_ms;
    absl::StatusOr<Lease> lease = client_->Acquire({.bytes = Bytes(bytes), .wait = absl::Milliseconds(wait_ms)});
    if (!lease.ok()) return Told(lease.status());
    lease_ = *std::move(lease);
    return absl::StrCat("ok ", lease_.id().value());
  }
  std::string Share(std::istringstream& words) {
    uint32_t uid = 0;
    std::string access;
    words >> uid >> access;
    absl::StatusOr<Ticket> ticket =
        lease_.Share({.access = access == "rw" ? Access::kReadWrite : Access::kReadOnly, .uid = Uid(uid)});
    return ticket.ok() ? absl::StrCat("ok ", ticket->text()) : Told(ticket.status());
  }
  std::string Attach(std::istringstream& words) {
    std::string text;
    words >> text;
    absl::StatusOr<Ticket> ticket = Ticket::Parse(text);
    if (!ticket.ok()) return Told(ticket.status());
    absl::StatusOr<Lease> lease = client_->Attach(*ticket);
    if (!lease.ok()) return Told(lease.status());
    lease_ = *std::move(lease);
    return lease_.read_only_advisory() ? "ok advisory" : "ok";
  }
  std::string Bytes_(const std::string& what, std::istringstream& words) {
    if (what == "put") {
      std::string text;
      words >> text;
      std::memcpy(lease_.data(), text.data(), text.size());
      return "ok";
    }
    size_t count = 0;
    words >> count;
    return absl::StrCat("ok ", std::string(reinterpret_cast<const char*>(lease_.data()), count));
  }
  std::string MakeWritable() {
    if (::mprotect(lease_.data(), lease_.size(), PROT_READ | PROT_WRITE) == 0) return "ok writable";
    return absl::StrCat("ok errno ", errno);
  }
  std::string AwaitEnd() {
    MutexLock lock(&mu_);
    while (events_.empty()) changed_.Wait(&mu_);
    static const std::map<Event::Kind, std::string> kNames = {
        {Event::Kind::kRecalled, "recalled"}, {Event::Kind::kRevoked, "revoked"},
        {Event::Kind::kExpired, "expired"},   {Event::Kind::kOwnerReleased, "owner_released"},
        {Event::Kind::kStopping, "stopping"}, {Event::Kind::kDisconnected, "disconnected"}};
    std::string name = kNames.at(events_.front());
    events_.pop_front();
    return "ok " + name;
  }
  std::string Stats() {
    ClientStats stats = client_->stats();
    return absl::StrCat("ok rpcs=", stats.rpcs, " leases=", stats.leases, " hits=", stats.cache_hits,
                        " recalled=", stats.recalled, " cached=", stats.cached_bytes);
  }
  std::string Exec(std::istringstream& words) {
    std::string program;
    std::string argument;
    words >> program >> argument;
    ::execl(program.c_str(), program.c_str(), argument.c_str(), nullptr);
    return "exec failed";
  }
  // A child that outlives this process with everything it inherited.
  std::string ForkSleep() {
    pid_t child = ::fork();
    if (child == 0) {
      ::close(STDOUT_FILENO);
      while (true) ::pause();
    }
    return absl::StrCat("ok ", child);
  }

  Mutex mu_;
  CondVar changed_;
  std::deque<Event::Kind> events_ ABSL_GUARDED_BY(mu_);  // not yet asked for
  std::unique_ptr<Client> client_;
  Lease lease_;
};

}  // namespace
}  // namespace ub

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto client = ub::Client::Connect({.runtime_dir = argv[1], .name = "actor"});
  std::cout << ub::Told(client.status()) << std::endl;
  if (!client.ok()) return 1;
  ub::Actor actor(*std::move(client));
  for (std::string line; std::getline(std::cin, line) && line != "quit";) std::cout << actor.Do(line) << std::endl;
  return 0;
}
