// Options of runs, traces and calls; replays that keep all elements.
#include "cli/bisect/bisected_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/flags/sizes.h"
#include "cli/flags/training_flags.h"
#include "engine/bundle/format.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// The options of a trace of ours; of another engine's none.
Json options_in(const std::optional<profiler::Trace>& trace) {
  if (!trace || trace->header().producer != "trainscope") return Json::object();
  const Json* options = trace->header().more.find("options");
  return options == nullptr ? Json::object() : *options;
}

BisectedModel model_of_run(const Invocation& given, const std::string& folder) {
  const Source source = run_named(folder);
  const Json& options = source.run().manifest().options;
  const Invocation invocation = given.with_run(options).with_argument(source.model_file().string());
  TrainRequest request = train_request(invocation);
  return {.model = std::move(request.model),
          .compile = std::move(request.compile),
          .schedule = request.schedule};
}

}  // namespace

bool knows_model(const std::string& folder) {
  return Folder::open(folder).has_file(kRunManifestFile);
}

BisectedModel bisected_model(const Invocation& given, const std::string& folder,
                             const std::optional<profiler::Trace>& trace) {
  if (knows_model(folder)) return model_of_run(given, folder);
  const Invocation invocation = given.with_run(options_in(trace));
  const Settings& settings = invocation.settings();
  if (!given.settings().has("model")) {
    throw Error(ErrorCode::kUsage, "no run here says which model was trained")
        .hint("--model FILE, and --loss and --optimizer as they were where no trace has them");
  }
  const OnnxModel model = OnnxModel::read(given.settings().text("model"));
  const bool other =
      trace && !trace->header().model.empty() && trace->header().model != hash_hex(model.hash());
  require(!other, ErrorCode::kUsage, "'{}' is not the model of the trace: its hash is {}, not {}",
          printable(given.settings().text("model")), hash_hex(model.hash()),
          trace ? trace->header().model : "");
  const Sizes sizes = resolve_sizes(model, size_request(settings));
  const std::int64_t steps = settings.find_integer("steps").value_or(1);
  return {.model = model,
          .compile = compile_options(invocation, model, sizes),
          .schedule = training_schedule(settings, steps)};
}

profiler::Trace with_elements(const Invocation& given, const std::string& folder,
                              const std::vector<std::int64_t>& steps, std::span<const Flag> own,
                              const std::filesystem::path& scratch) {
  std::set<std::int64_t> wanted(steps.begin(), steps.end());
  for (const std::int64_t step : steps) {
    if (step > 1) wanted.insert(step - 1);
  }
  const Replayable of(given, run_named(folder), steps.front(), steps.back(), own);
  tell_cost(of);
  NumericsRequest numerics{
      .all_values = false, .oracle = false, .steps = {wanted.begin(), wanted.end()}, .full = {"*"}};
  return *replayed(of, std::move(numerics), scratch).trace;
}

}  // namespace trainscope
