// plan.bin: the record of a plan as a file that is mapped, not parsed (docs/run-format.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/bundle/plan_record.h"
#include "engine/core/file.h"
#include "engine/core/folder.h"

namespace trainscope {

struct PlanStorage;

// How to get one where it is damaged or missing.
inline constexpr const char* kPlanFileHint =
    "a session of training writes it when it starts: `train --resume auto` does";

// The file's bytes are all or nothing: an AtomicFile. Throws kIo.
void write_plan_file(const PlanRecord& record, const FolderEntry& entry);
// The same bytes in memory.
std::string plan_file_bytes(const PlanRecord& record);

// A plan that somebody has written, with what its rows lie in.
class StoredPlan {
 public:
  // Of this version or one before it. Throws kIo when the file cannot be read, and kBadInput naming
  // it unless every offset, count, hash and position is right.
  static StoredPlan open(const FolderEntry& entry);
  // Of a file's bytes, which are copied. Throws kBadInput.
  static StoredPlan of_bytes(std::string_view bytes);
  // Of a run from before there was plan.bin.
  explicit StoredPlan(PlanRecord record);

  ~StoredPlan();
  StoredPlan(StoredPlan&&) noexcept;
  StoredPlan& operator=(StoredPlan&&) noexcept;

  const PlanView& view() const { return view_; }

 private:
  StoredPlan();
  explicit StoredPlan(MappedFile file);

  void read(std::span<const std::byte> bytes);  // which lie in the storage

  std::unique_ptr<PlanStorage> storage_;
  PlanView view_;
};

}  // namespace trainscope
