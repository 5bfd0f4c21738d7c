#include "daemon/engine/path_choice.h"

namespace ubd {
namespace {

using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;

bool Aligned(const PathQuestion& question, const FileFacts& file) {
  return question.file_offset % file.offset_align == 0 && question.length % file.offset_align == 0 &&
         question.memory_offset % file.memory_align == 0;
}

// kNone: nothing speaks against it.
PathReason AgainstDirect(const PathQuestion& question, const FileFacts& file) {
  if (!file.trusted || !file.direct) {
    return file.why_not != PathReason::kNone ? file.why_not : PathReason::kFsNotProvable;
  }
  if (question.flags_changed) return PathReason::kFlagsChanged;
  // Before alignment: a short record mostly is both, and packing it with others is what helps.
  if (question.policy == PathPolicy::kPreferDirect && question.length < question.min_direct_bytes) {
    return PathReason::kBelowMinDirect;
  }
  return Aligned(question, file) ? PathReason::kNone : PathReason::kUnaligned;
}

}  // namespace

PathPolicy EffectivePolicy(PathPolicy transfer, PathPolicy queue, PathPolicy node) {
  if (transfer != PathPolicy::kDefault) return transfer;
  if (queue != PathPolicy::kDefault) return queue;
  return node;
}

PathChoice ChoosePath(const PathQuestion& question, const FileFacts& file) {
  // What the daemon does not trust it does not touch, whichever way.
  if (!file.trusted) return {Path::kNone, AgainstDirect(question, file)};
  if (question.policy == PathPolicy::kStagedOnly) return {Path::kStaged, PathReason::kForced};
  const PathReason reason = AgainstDirect(question, file);
  if (reason == PathReason::kNone) return {Path::kDirect, reason};
  return {question.policy == PathPolicy::kDirectOnly ? Path::kNone : Path::kStaged, reason};
}

}  // namespace ubd
