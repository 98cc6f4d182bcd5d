// plan.bin: the record of a plan as a file that is mapped, not parsed (docs/run-format.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/bundle/plan_record.h"
#include "engine/core/file.h"
#include "engine/core/folder.h"

namespace trainscope {

struct TablesOfVersion1;

// How to get one where it is damaged or missing.
inline constexpr const char* kPlanFileHint =
    "a session of training writes it when it starts: `train --resume auto` does";

// The file's bytes are all or nothing: an AtomicFile. Throws kIo.
void write_plan_file(const PlanRecord& record, const FolderEntry& entry);
// The same bytes in memory.
std::string plan_file_bytes(const PlanRecord& record);

// The rows in a file's bytes, which must outlive them and begin at a multiple of eight. Throws
// kBadInput unless they are of this version and every offset, count, hash and position is right.
PlanView view_of_plan_file(std::span<const std::byte> bytes);

// A plan that somebody has written, with what its rows lie in.
class StoredPlan {
 public:
  // Of this version or the one before it. Throws kIo when the file cannot be read, and kBadInput
  // naming it when it is damaged.
  static StoredPlan open(const FolderEntry& entry);
  // Of a run from before there was plan.bin.
  explicit StoredPlan(PlanRecord record);

  ~StoredPlan();
  StoredPlan(StoredPlan&&) noexcept;
  StoredPlan& operator=(StoredPlan&&) noexcept;

  const PlanView& view() const { return view_; }

 private:
  explicit StoredPlan(MappedFile file);

  std::unique_ptr<const MappedFile> file_;
  std::unique_ptr<const TablesOfVersion1> older_;  // of a file of version 1
  std::unique_ptr<const PlanRecord> record_;
  PlanView view_;
};

}  // namespace trainscope
