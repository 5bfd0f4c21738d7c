#include "client/ubctl/verify/stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "client/ubctl/load/cold_cache.h"
#include "client/ubctl/load/queue_load.h"
#include "client/ubctl/verify/pattern.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

constexpr Bytes kMostMemory = MiB(2);  // more says no more, and takes longer to look at
constexpr absl::Duration kLeastPatience = absl::Seconds(30);
constexpr uint64_t kSyncTag = 1 << 20;

absl::StatusOr<UniqueFd> MakeFile(const std::string& directory) {
  std::string path = directory + "/.ubctl-verify-XXXXXX";
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("make a file in ", directory));
  unlink(path.c_str());  // at once: nothing is left behind, however this ends
  return fd;
}

absl::StatusOr<Lease> OneBlock(Client& client, const VerifyStream::Options& options) {
  AcquireOptions acquire;
  acquire.pool = options.pool;
  acquire.bytes = Bytes(1);
  acquire.wait = options.wait;
  acquire.cacheable = false;
  return client.Acquire(acquire);
}

// What a demanded path and the attested one make wrong.
std::string WrongPath(const Piece& piece, const Completion& done) {
  bool wrong = (piece.policy == PathPolicy::kDirectOnly && done.path != Path::kDirect) ||
               (piece.policy == PathPolicy::kStagedOnly && done.path != Path::kStaged);
  if (!wrong) return "";
  return absl::StrCat("a ", wire::PathPolicyName(piece.policy), " transfer of ", piece.length, " bytes at ", piece.file,
                      " was attested ", PathName(done.path));
}

void KeepFirst(std::string& fault, const std::string& another) {
  if (fault.empty()) fault = another;
}

// "" or where in `what` bytes are wrong.
std::string Compare(const char* what, absl::Span<const std::byte> is, absl::Span<const std::byte> should_be) {
  if (!FirstDifference(is, should_be).has_value()) return "";
  return absl::StrCat(what, ": ", DescribeDifference(is, should_be));
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerifyStream>> VerifyStream::Open(Client& client, const Options& options) {
  std::unique_ptr<VerifyStream> stream(new VerifyStream());
  auto fd = MakeFile(options.directory);
  if (!fd.ok()) return fd.status();
  stream->fd_ = *std::move(fd);
  auto file = File::FromDescriptor(client, stream->fd_.get(), options.wait);
  if (!file.ok()) return file.status();
  stream->file_ = *std::move(file);
  auto source = OneBlock(client, options);
  if (!source.ok()) return source.status();
  stream->source_ = *std::move(source);
  auto target = OneBlock(client, options);
  if (!target.ok()) return target.status();
  stream->target_ = *std::move(target);
  stream->memory_ = std::min(kMostMemory, Bytes(stream->source_.size()));
  stream->number_ = options.number;
  stream->patience_ = std::max(options.wait, kLeastPatience);
  auto queue = Queue::Open(client, {.deadline = options.wait});
  if (!queue.ok()) return queue.status();
  stream->queue_ = *std::move(queue);
  return stream;
}

absl::StatusOr<StreamOutcome> VerifyStream::Round(uint64_t seed) {
  StreamPlan plan = MakePlan(seed, number_, memory_, file_.direct() ? file_.offset_align() : Bytes(0));
  StreamOutcome outcome;
  FillMemory(plan);
  if (absl::Status status = FillFile(plan); !status.ok()) return status;
  if (absl::Status status = Transfer(plan, /*write=*/true, outcome.written, outcome.fault); !status.ok()) return status;
  if (absl::Status status = Sync(); !status.ok()) return status;
  outcome.cached_read = DropCache(fd_.get(), plan.file_bytes);
  if (absl::Status status = Transfer(plan, /*write=*/false, outcome.read, outcome.fault); !status.ok()) return status;
  KeepFirst(outcome.fault, CheckMemory(plan));
  auto in_file = CheckFile(plan);
  if (!in_file.ok()) return in_file.status();
  KeepFirst(outcome.fault, *in_file);
  return outcome;
}

void VerifyStream::FillMemory(const StreamPlan& plan) {
  FillPattern(plan.source_seed, 0, source_.span().first(memory_.count()));
  FillPattern(plan.target_guard_seed, 0, target_.span().first(memory_.count()));
}

absl::Status VerifyStream::FillFile(const StreamPlan& plan) {
  std::vector<std::byte> guard(plan.file_bytes);
  FillPattern(plan.file_guard_seed, 0, absl::MakeSpan(guard));
  for (size_t at = 0; at < guard.size();) {
    ssize_t put = pwrite(fd_.get(), guard.data() + at, guard.size() - at, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return ErrnoError(errno, "write guard bytes into the file");
    at += static_cast<size_t>(put);
  }
  return fdatasync(fd_.get()) == 0 ? absl::OkStatus() : ErrnoError(errno, "write back guard bytes");
}

absl::Status VerifyStream::Transfer(const StreamPlan& plan, bool write, PathTally& paths, std::string& fault) {
  std::vector<Op> ops;
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const Piece& piece = plan.pieces[i];
    TransferOptions options = {.path = piece.policy};
    Bytes length(piece.length);
    ops.push_back(write ? WriteOp(i, source_, Bytes(piece.source), length, file_, Bytes(piece.file), options)
                        : ReadOp(i, file_, Bytes(piece.file), target_, Bytes(piece.target), length, options));
  }
  if (absl::Status status = queue_->Submit(ops); !status.ok()) return status;
  std::vector<Completion> done(ops.size());
  absl::Status first;
  for (size_t left = ops.size(); left > 0;) {
    auto got = queue_->Wait(absl::MakeSpan(done), 1, patience_);
    if (!got.ok()) return got.status();
    for (size_t i = 0; i < *got; ++i) {
      if (done[i].more) continue;
      --left;
      const Piece& piece = plan.pieces[done[i].tag];
      if (!done[i].status.ok() && first.ok()) first = done[i].status;
      if (!done[i].status.ok()) continue;
      paths.Add(done[i]);
      KeepFirst(fault, WrongPath(piece, done[i]));
      if (done[i].bytes.count() != piece.length)
        KeepFirst(fault, absl::StrCat("a ", write ? "write" : "read", " of ", piece.length, " bytes at ", piece.file,
                                      " moved ", done[i].bytes.count()));
    }
  }
  return first;
}

absl::Status VerifyStream::Sync() {
  std::vector<Op> ops = {FsyncOp(kSyncTag, file_)};
  if (absl::Status status = queue_->Submit(ops); !status.ok()) return status;
  std::vector<Completion> done(1);
  auto got = queue_->Wait(absl::MakeSpan(done), 1, patience_);
  return got.ok() ? done[0].status : got.status();
}

std::string VerifyStream::CheckMemory(const StreamPlan& plan) const {
  std::vector<std::byte> expected(memory_.count());
  FillPattern(plan.source_seed, 0, absl::MakeSpan(expected));
  std::string fault = Compare("the block that was written changed", source_.span().first(memory_.count()), expected);
  FillPattern(plan.target_guard_seed, 0, absl::MakeSpan(expected));
  for (const Piece& piece : plan.pieces)
    FillPattern(plan.source_seed, piece.source, absl::MakeSpan(expected).subspan(piece.target, piece.length));
  KeepFirst(fault, Compare("the block that was read into", target_.span().first(memory_.count()), expected));
  return fault;
}

absl::StatusOr<std::string> VerifyStream::CheckFile(const StreamPlan& plan) const {
  std::vector<std::byte> is(plan.file_bytes);
  for (size_t at = 0; at < is.size();) {
    ssize_t got = pread(fd_.get(), is.data() + at, is.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read the file plainly");
    if (got == 0) return absl::StrCat("the file ends at ", at, " and should have ", is.size(), " bytes");
    at += static_cast<size_t>(got);
  }
  std::vector<std::byte> expected(plan.file_bytes);
  FillPattern(plan.file_guard_seed, 0, absl::MakeSpan(expected));
  for (const Piece& piece : plan.pieces)
    FillPattern(plan.source_seed, piece.source, absl::MakeSpan(expected).subspan(piece.file, piece.length));
  return Compare("the file, by plain read(2)", is, expected);
}

}  // namespace ub::ctl
