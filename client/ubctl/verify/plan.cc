#include "client/ubctl/verify/plan.h"

#include <algorithm>
#include <array>

#include "client/ubctl/seed.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostPieces = 32;
// Lengths at which off-by-one errors live.
constexpr auto kEdges = std::to_array<uint64_t>({1, 2, 511, 512, 513, 4095, 4096, 4097, 8191, 65535, 65537});

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Where the next piece goes: on a page of its own, after at least a page of guard bytes.
class Cursor {
 public:
  uint64_t Place(uint64_t length, uint64_t in_page) {
    uint64_t at = next_ + in_page;
    next_ = RoundUp(at + length, kPage) + kPage;
    return at;
  }
  uint64_t end() const { return next_; }

 private:
  uint64_t next_ = kPage;
};

struct Drawn {
  uint64_t length;
  wire::PathPolicy policy;
  bool aligned;
};

Drawn DrawPiece(Draw& draw, uint64_t longest, uint64_t align) {
  uint64_t kind = draw.Below(align > 0 ? 4 : 2);
  uint64_t length = draw.Below(2) == 0 ? kEdges[draw.Below(kEdges.size())] : 1 + draw.Below(longest);
  if (kind >= 2) return {RoundUp(length, align), wire::PathPolicy::kDirectOnly, true};
  return {length, kind == 0 ? wire::PathPolicy::kPreferDirect : wire::PathPolicy::kStagedOnly, draw.Below(4) == 0};
}

}  // namespace

StreamPlan MakePlan(uint64_t seed, uint64_t stream, Bytes memory, Bytes align) {
  Draw draw(Mix(seed) ^ Mix(stream + 1));
  StreamPlan plan;
  plan.source_seed = draw.Next();
  plan.target_guard_seed = draw.Next();
  plan.file_guard_seed = draw.Next();
  uint64_t unit = std::max<uint64_t>(align.count(), 1);
  uint64_t longest = memory.count() / 8;
  Cursor source;
  Cursor target;
  Cursor file;
  while (plan.pieces.size() < kMostPieces) {
    Drawn drawn = DrawPiece(draw, longest, align.count());
    auto in_page = [&] {
      uint64_t offset = draw.Below(kPage);
      return drawn.aligned ? offset / unit * unit % kPage : offset;
    };
    Cursor source_before = source;
    Cursor target_before = target;
    Piece piece = {.source = source.Place(drawn.length, in_page()),
                   .target = target.Place(drawn.length, in_page()),
                   .length = drawn.length,
                   .policy = drawn.policy};
    if (std::max(source.end(), target.end()) > memory.count()) {
      source = source_before;
      target = target_before;
      break;
    }
    piece.file = file.Place(drawn.length, in_page());
    plan.pieces.push_back(piece);
  }
  plan.file_bytes = file.end();
  return plan;
}

}  // namespace ub::ctl
