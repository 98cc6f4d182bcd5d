// plan.bin: the record of a plan as a file that is mapped, not parsed (docs/plan-format.md).
#pragma once

#include <cstdint>
#include <string>

#include "engine/bundle/plan_record.h"
#include "engine/core/folder.h"
#include "engine/core/shared_bytes.h"

namespace trainscope {

// How to get one where it is damaged or missing.
inline constexpr const char* kPlanFileHint =
    "a session of training writes it when it starts: `train --resume auto` does";

// A file that is longer is none: a call takes some 500 bytes, and reading hashes all of them.
inline constexpr std::uint64_t kMostPlanFileBytes = std::uint64_t{4} << 30;

// The file's bytes are all or nothing: an AtomicFile. Throws kIo.
void write_plan_file(const PlanRecord& record, const FolderEntry& entry);
// The same bytes in memory.
std::string plan_file_bytes(const PlanRecord& record);

// A plan that somebody has written. Its view, and each copy of that, has a share of what the rows
// lie in.
class StoredPlan {
 public:
  // Of this version or one before it. Throws kIo when the file cannot be read, and kBadInput naming
  // it unless every offset, count, hash and position is right.
  static StoredPlan open(const FolderEntry& entry);
  // Of a file's bytes, which begin at a multiple of eight. Throws kBadInput.
  explicit StoredPlan(SharedBytes file);
  // Of a run from before there was plan.bin.
  explicit StoredPlan(PlanRecord record);

  const PlanView& view() const { return view_; }

 private:
  PlanView view_;
};

}  // namespace trainscope
