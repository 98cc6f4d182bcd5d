// Rows of `plan --target`, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/run/batch/world_batch.h"
#include "engine/world/world_plan.h"

namespace trainscope {

struct WorldRow {
  WorldPlan plan;
  bool fits = false;
  std::optional<LargestBatches> batches = {};
};

struct WorldTable {
  std::string_view device;
  std::int64_t budget_bytes = 0;
  std::int64_t batch = 0;     // of one micro-batch on one device
  std::int64_t sequence = 0;  // 0: the model has none
  std::int64_t micro_batches = 1;
  std::vector<WorldRow> rows;
};

Outcome world_outcome(const WorldTable& table);

}  // namespace trainscope
