// Each plan is a folder as of a run, named after what is in it: equal plans are kept once.
#include "tests/support/kept_plans.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/bundle/plan_json.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/onnx/export.h"
#include "engine/record_plan.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

struct StageFile {
  std::string name;
  std::string bytes;
};

fs::path kept_plans_folder() {
  const char* folder = std::getenv(kKeptPlansVariable);
  return folder == nullptr ? "" : folder;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  REQUIRE_MESSAGE(file.flush().good(), path.string());
}

// Stages that change when ops run, not what is computed: the one before them is compared too.
bool keeps_results(const std::string& stage) {
  return std::ranges::find(kProgramStages, stage) != kProgramStages.end();
}

template <typename Row, typename NameOf>
std::size_t first_to_check(const std::vector<Row>& stages, const NameOf& name_of) {
  std::size_t first = stages.size() - 1;
  while (first > 0 && keeps_results(name_of(stages[first]))) --first;
  return first;
}

void write_run(const fs::path& run, const std::string& plan, const std::vector<StageFile>& stages) {
  fs::create_directories(run / kRunStagesFolder);
  Json rows = Json::array();
  for (const StageFile& stage : stages) {
    const std::string file = std::to_string(rows.as_array().size()) + "-" + stage.name + ".onnx";
    write(run / kRunStagesFolder / file, stage.bytes);
    rows.push_back(Json::object({{"name", stage.name}, {"file", file}}));
  }
  write(run / kRunStagesFolder / kRunStagesFile, Json::object({{"stages", rows}}).dump());
  write(run / kRunReadablePlanFile, plan);
}

// Other processes may keep the same plan at the same time.
void keep(const std::string& plan, const std::vector<StageFile>& stages) {
  Hasher hasher;
  hasher.text(plan);
  for (const StageFile& stage : stages) hasher.text(stage.name).text(stage.bytes);
  const fs::path kept = kept_plans_folder() / hash_hex(hasher.digest());
  if (fs::exists(kept)) return;
  const fs::path written = kept.string() + "." + std::to_string(getpid());
  write_run(written, plan, stages);
  std::error_code there_already;
  fs::rename(written, kept, there_already);
  if (there_already) fs::remove_all(written);
}

}  // namespace

void keep_plan_of_run(const fs::path& run) {
  if (kept_plans_folder().empty() || !fs::exists(run / kRunReadablePlanFile)) return;
  const Json stages = Json::parse(read(run / kRunStagesFolder / kRunStagesFile));
  const JsonArray& rows = stages.array_at("stages");
  const auto name_of = [](const Json& row) { return row.get<std::string>("name"); };
  std::vector<StageFile> files;
  for (std::size_t i = first_to_check(rows, name_of); i < rows.size(); ++i) {
    const fs::path file = run / kRunStagesFolder / rows[i].get<std::string>("file");
    files.push_back({.name = name_of(rows[i]), .bytes = read(file)});
  }
  keep(read(run / kRunReadablePlanFile), files);
}

void keep_plan(const Program& program, const Stages& stages) {
  if (kept_plans_folder().empty()) return;
  if (std::ranges::any_of(program.buffers, &PlannedBuffer::external)) return;
  const auto file = [](const std::string& name, const Graph& graph) -> StageFile {
    return {.name = name, .bytes = onnx_bytes(graph, {.weights = Weights::kOmit, .tensor = {}})};
  };
  std::vector<StageFile> files;
  if (!stages.empty()) {
    const std::size_t first = first_to_check(stages, [](const Stage& stage) { return stage.name; });
    for (std::size_t i = first; i + 1 < stages.size(); ++i) {
      files.push_back(file(stages[i].name, stages[i].graph));
    }
  }
  files.push_back(file(stages.empty() ? "lowered" : stages.back().name, program.graph));
  keep(plan_json(view_of(plan_record(program))), files);
}

}  // namespace trainscope::test
