// ubctl against a daemon that is not this build's: another protocol version, an older one without a call, one that
// never answers.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"
#include "proto/wire/version.h"
#include "tests/unit/ubctl/run_ubctl.h"
#include "ub/v1/admin.grpc.pb.h"

namespace ub::ctl {
namespace {

// Knows only GetStatus, and says it speaks `protocol`.
class FakeAdmin final : public v1::Admin::Service {
 public:
  explicit FakeAdmin(uint32_t protocol) : protocol_(protocol) {}
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::Status* status) override {
    status->set_version("9.9.9");
    status->set_protocol(protocol_);
    status->set_state("serving");
    return grpc::Status::OK;
  }

 private:
  uint32_t protocol_;
};

class OtherDaemon : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/ubctl-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Serve(uint32_t protocol) {
    admin_ = std::make_unique<FakeAdmin>(protocol);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + directory_ + "/ubd.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(admin_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  std::string directory_;
  std::unique_ptr<FakeAdmin> admin_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(OtherDaemon, StatusAndVersionWorkAcrossProtocols) {
  Serve(ProtocolVersion() + 1);
  Outcome status = RunUbctl({"status"}, directory_);
  EXPECT_EQ(status.code, 0);
  EXPECT_NE(status.out.find("this ubctl is the older one"), std::string::npos) << status.out;
  Outcome version = RunUbctl({"version", "--json"}, directory_);
  EXPECT_EQ(version.code, 0);
  EXPECT_NE(version.out.find("\"version\": \"9.9.9\""), std::string::npos);
  EXPECT_NE(version.out.find("\"compatible\": false"), std::string::npos) << version.out;
}

TEST_F(OtherDaemon, OlderDaemonIsToldToRestart) {
  Serve(ProtocolVersion() - 1);
  EXPECT_NE(RunUbctl({"version"}, directory_).out.find("systemctl restart ubd"), std::string::npos);
}

TEST_F(OtherDaemon, UnknownCallSaysThatReleasesDiffer) {
  Serve(ProtocolVersion());
  Outcome outcome = RunUbctl({"blocks", "--json"}, directory_);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("ubctl version"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("\"code\": \"UNIMPLEMENTED\""), std::string::npos);
}

TEST_F(OtherDaemon, StreamThatIsUnknownEndsAtOnce) {
  Serve(ProtocolVersion());
  EXPECT_EQ(RunUbctl({"watch"}, directory_).code, 1);
}

TEST_F(OtherDaemon, DaemonThatNeverAnswersIs4WithinTheTimeout) {
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  (directory_ + "/ubd.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  absl::Time start = absl::Now();
  // More than the backlog: the later ones cannot even connect.
  for (auto words : std::vector<std::vector<std::string>>{{"status"}, {"watch"}, {"pools"}, {"top"}, {"drain"}}) {
    words.insert(words.begin(), {"--timeout", "300ms", "--json"});
    Outcome outcome = RunUbctl(words, directory_);
    EXPECT_EQ(outcome.code, 4) << words.back() << outcome.err;
    EXPECT_NE(outcome.out.find("\"reason\": \"NOT_ANSWERING\""), std::string::npos) << outcome.out;
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(5 * 2));
}

}  // namespace
}  // namespace ub::ctl
