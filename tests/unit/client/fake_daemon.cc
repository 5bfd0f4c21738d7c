#include "tests/unit/client/fake_daemon.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "ub/v1/error.pb.h"

namespace ub {
namespace {

constexpr char kToken[] = "07000000000000000000000000000000";

UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || ::listen(fd.get(), 16) != 0)
    ::abort();
  return fd;
}

}  // namespace

FakeDaemon::FakeDaemon() {
  char name[] = "/tmp/ub-fake.XXXXXX";
  dir_ = ::mkdtemp(name);
  listener_ = ListenAt(dir_ + "/lifeline.sock");
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir_ + "/ubd.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  builder.RegisterService(&admin_);
  server_ = builder.BuildAndStart();
  lifeline_thread_ = std::thread([this] { ServeLifeline(); });
}

FakeDaemon::~FakeDaemon() {
  StopServer();
  ::shutdown(listener_.get(), SHUT_RDWR);
  {
    MutexLock lock(&mu_);
    if (lifeline_.valid()) ::shutdown(lifeline_.get(), SHUT_RDWR);
  }
  lifeline_thread_.join();
  ::unlink((dir_ + "/lifeline.sock").c_str());
  ::unlink((dir_ + "/ubd.sock").c_str());
  ::rmdir(dir_.c_str());
}

void FakeDaemon::StopServer() {
  EndStreams();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  server_.reset();
}

// One client after the other; each keeps the lifeline until it hangs up.
void FakeDaemon::ServeLifeline() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    std::byte hello[wire::kMaxFrameBytes];
    if (::recv(fd.get(), hello, sizeof(hello), 0) <= 0) continue;
    auto welcome = wire::NewFrame<wire::Welcome>();
    welcome.session = 1;
    welcome.token = {7};
    welcome.word_count = wire::kWordsPerSession;
    int page = page_.fd();
    hung_up_.store(false);
    int raw = fd.get();
    {
      MutexLock lock(&mu_);
      lifeline_ = std::move(fd);
      if (!wire::SendPacket(raw, wire::AsBytes(welcome), absl::Span<const int>(&page, 1)).ok()) continue;
    }
    while (::recv(raw, hello, sizeof(hello), 0) > 0) {
    }
    hung_up_.store(true);
    hung_up_.notify_all();
  }
}

void FakeDaemon::Set(const Script& script) {
  MutexLock lock(&mu_);
  script_ = script;
}

grpc::Status FakeDaemon::Refusal(grpc::StatusCode code, const std::string& reason, const std::string& text) {
  v1::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("ub");
  (*info.mutable_metadata())["asked"] = "7";
  v1::StatusDetails details;
  details.set_code(code);
  details.set_message(text);
  auto* any = details.add_details();
  any->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  any->set_value(info.SerializeAsString());
  return grpc::Status(code, text, details.SerializeAsString());
}

grpc::Status FakeDaemon::CheckToken(grpc::ServerContext* context) const {
  auto it = context->client_metadata().find("ub-token");
  bool good = it != context->client_metadata().end() && std::string(it->second.data(), it->second.size()) == kToken;
  return good ? grpc::Status::OK : Refusal(grpc::StatusCode::UNAUTHENTICATED, "NO_SESSION", "no token");
}

void FakeDaemon::Grant(uint64_t bytes, bool cacheable, v1::Access access, v1::Lease* lease) {
  MutexLock lock(&mu_);
  uint64_t id = next_lease_++;
  lease->set_id(id);
  lease->set_pool("first");
  lease->set_generation(100 + id);
  lease->set_block_bytes(kBlockBytes);
  lease->set_page_bytes(4096);
  lease->set_access(access);
  for (uint64_t i = 0; i < PiecesFor(Bytes(bytes), Bytes(kBlockBytes)); ++i)
    lease->add_ub_addr(UbAddr::kBase + i * kBlockBytes);
  if (!cacheable) return;
  uint32_t word = static_cast<uint32_t>((id - 1) % wire::kWordsPerSession);
  lease->set_word(word);
  page_.Busy(word, 100 + id);
}

void FakeDaemon::SendFds(const v1::Lease& lease, const Script& script) {
  MutexLock lock(&mu_);
  uint32_t total = static_cast<uint32_t>(lease.ub_addr_size());
  UniqueFd memory = MakeMemfd(script.fd_bytes, script.seals);
  for (uint32_t first = 0; first < total; first += script.fds_per_frame) {
    auto grant = wire::NewFrame<wire::Grant>();
    grant.lease = lease.id();
    grant.generation = lease.generation();
    grant.first = first;
    grant.count = std::min(script.fds_per_frame, total - first);
    grant.total = total;
    grant.access = static_cast<uint32_t>(lease.access());
    grant.delivery = 1;
    std::vector<int> fds(grant.count, memory.get());  // one memfd stands for all blocks
    // The client's socket buffer holds what a test sends; no credits here.
    if (!wire::SendPacket(lifeline_.get(), wire::AsBytes(grant), fds).ok()) return;
  }
}

grpc::Status FakeDaemon::Acquire(grpc::ServerContext* context, const v1::AcquireRequest* request,
                                 v1::AcquireResponse* response) {
  if (grpc::Status bad = CheckToken(context); !bad.ok()) return bad;
  Script script;
  {
    MutexLock lock(&mu_);
    acquires_.push_back(*request);
    script = script_;
  }
  if (script.before_answer) script.before_answer();
  if (!script.acquire.ok()) return script.acquire;
  Grant(request->bytes(), request->cacheable(), v1::READ_WRITE, response->mutable_lease());
  if (request->has_ttl_ms()) response->mutable_lease()->set_ttl_left_ms(request->ttl_ms());
  if (lose_.load() > 0 && lose_.fetch_sub(1) > 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost");
  if (script.send_failure) {
    auto failed = wire::NewFrame<wire::GrantFailed>();
    failed.lease = response->lease().id();
    failed.code = static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
    wire::SetText(failed.reason, "DAEMON_FD_LIMIT");
    wire::SetText(failed.text, "no fds");
    MutexLock lock(&mu_);
    (void)wire::SendPacket(lifeline_.get(), wire::AsBytes(failed), {});
  } else if (script.send_grant) {
    SendFds(response->lease(), script);
  }
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                                 v1::ReleaseResponse*) {
  MutexLock lock(&mu_);
  if (request->has_lease()) released_.push_back(request->lease());
  if (request->has_request_id()) released_requests_.push_back(request->request_id());
  return CheckToken(context);
}

grpc::Status FakeDaemon::Share(grpc::ServerContext* context, const v1::ShareRequest* request,
                               v1::ShareResponse* response) {
  std::string ticket(16, '\0');
  ticket[0] = static_cast<char>(request->lease());
  response->set_ticket(ticket);
  return CheckToken(context);
}

grpc::Status FakeDaemon::Attach(grpc::ServerContext* context, const v1::AttachRequest*, v1::AttachResponse* response) {
  Grant(kBlockBytes, false, v1::READ_ONLY, response->mutable_lease());
  SendFds(response->lease(), Script());
  return CheckToken(context);
}

grpc::Status FakeDaemon::Ping(grpc::ServerContext* context, const v1::PingRequest*, v1::PingResponse*) {
  return CheckToken(context);
}

grpc::Status FakeDaemon::Watch(grpc::ServerContext* context, const v1::WatchRequest*,
                               grpc::ServerWriter<v1::Event>* writer) {
  if (grpc::Status bad = CheckToken(context); !bad.ok()) return bad;
  v1::Event first;
  first.set_kind(v1::Event::WATCHING);
  writer->Write(first);
  MutexLock lock(&mu_);
  ++watchers_;
  changed_.SignalAll();
  size_t next = events_.size();
  while (!streams_end_ && !context->IsCancelled()) {
    // A fake may look around now and then: the sync API has no event for a cancelled call.
    if (next == events_.size()) changed_.WaitWithTimeout(&mu_, absl::Milliseconds(20));
    for (; next < events_.size(); ++next) writer->Write(events_[next]);
  }
  --watchers_;
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::FakeAdmin::ListLeases(grpc::ServerContext*, const v1::ListLeasesRequest*,
                                               v1::LeaseList* list) {
  MutexLock lock(&daemon_.mu_);
  for (uint64_t lease : daemon_.listed_) list->add_leases()->set_id(lease);
  return grpc::Status::OK;
}

void FakeDaemon::Emit(const v1::Event& event) {
  MutexLock lock(&mu_);
  events_.push_back(event);
  changed_.SignalAll();
}

void FakeDaemon::Emit(v1::Event::Kind kind, uint64_t lease) {
  v1::Event event;
  event.set_kind(kind);
  event.set_lease(lease);
  Emit(event);
}

void FakeDaemon::EndStreams() {
  MutexLock lock(&mu_);
  streams_end_ = true;
  changed_.SignalAll();
}

void FakeDaemon::AwaitWatchers(int count) {
  MutexLock lock(&mu_);
  while (watchers_ < count) changed_.Wait(&mu_);
}

std::vector<uint64_t> FakeDaemon::released() const {
  MutexLock lock(&mu_);
  return released_;
}

std::vector<uint64_t> FakeDaemon::released_requests() const {
  MutexLock lock(&mu_);
  return released_requests_;
}

std::vector<v1::AcquireRequest> FakeDaemon::acquires() const {
  MutexLock lock(&mu_);
  return acquires_;
}

void FakeDaemon::SetListed(std::vector<uint64_t> leases) {
  MutexLock lock(&mu_);
  listed_ = std::move(leases);
}

}  // namespace ub
