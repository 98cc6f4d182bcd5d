// Files as of a run, without a manifest.
#include "engine/plan_folder.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "engine/bundle/format.h"
#include "engine/bundle/plan_file.h"
#include "engine/bundle/plan_json.h"
#include "engine/core/file.h"
#include "engine/onnx/export.h"

namespace trainscope {

void write_plan_folder(const std::filesystem::path& folder, const PlanRecord& plan,
                       const std::vector<PlanStage>& stages) {
  make_directories(folder);
  const Folder root = Folder::open(folder);
  const Folder files = root.make(kRunStagesFolder);
  Json rows = Json::array();
  for (const PlanStage& stage : stages) {
    const std::string file = fmt::format("{:02}-{}.onnx", rows.as_array().size(), stage.name);
    write_onnx(stage.graph, files / file, {.weights = Weights::kOmit, .tensor = {}});
    rows.push_back(Json::object({{"name", stage.name}, {"file", file}}));
  }
  write_file_atomic(files / kRunStagesFile, Json::object({{"stages", std::move(rows)}}).dump(1));
  write_plan_file(plan, root / kRunPlanFile);
  write_file_atomic(root / kRunReadablePlanFile, plan_json(view_of(plan)));
}

}  // namespace trainscope
