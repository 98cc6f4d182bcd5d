// plan.bin: the record of a plan as a file that is mapped, not parsed (docs/run-format.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/bundle/plan_record.h"
#include "engine/core/file.h"
#include "engine/core/folder.h"

namespace trainscope {

// How to get one where it is damaged or missing.
inline constexpr const char* kPlanFileHint =
    "a session of training writes it when it starts: `train --resume auto` does";

// The file's bytes are all or nothing: an AtomicFile. Throws kIo.
void write_plan_file(const PlanRecord& record, const FolderEntry& entry);
// The same bytes in memory.
std::string plan_file_bytes(const PlanRecord& record);

// The rows in a file's bytes, which must outlive them and begin at a multiple of eight. Throws
// kBadInput unless every offset, count, hash and position in them is right.
PlanView view_of_plan_file(std::span<const std::byte> bytes);

// A plan that somebody has written, with what its rows lie in.
class StoredPlan {
 public:
  // Throws kIo when the file cannot be read, and kBadInput naming it when it is damaged.
  static StoredPlan open(const FolderEntry& entry);
  // Of a run from before there was plan.bin.
  explicit StoredPlan(PlanRecord record);

  PlanView view() const { return record_ ? view_of(*record_) : mapped_; }

 private:
  explicit StoredPlan(MappedFile file);

  std::unique_ptr<const MappedFile> file_;
  std::unique_ptr<const PlanRecord> record_;
  PlanView mapped_;
};

}  // namespace trainscope
