// A plan by itself in a folder, as a run's folder has it: plan.bin, plan.json and stages/.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/ir/graph.h"

namespace trainscope {

struct PlanStage {
  std::string_view
      name;  // of the pass; "order" and "recompute" must compute what the one before does
  const Graph& graph;
};

// The stages go into files without weights, the last is the one that was planned. Makes the folder;
// files that are there are replaced. Throws kIo.
void write_plan_folder(const std::filesystem::path& folder, const PlanRecord& plan,
                       const std::vector<PlanStage>& stages);

}  // namespace trainscope
