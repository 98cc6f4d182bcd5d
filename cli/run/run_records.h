// What `train` writes of itself into a run's folder: manifest, options, stages, plan.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "engine/bundle/writer.h"
#include "engine/session.h"

namespace trainscope {

// The options of a run with their resolved values.
Json resolved_options(const Invocation& invocation, const LossOptions& loss, const Sizes& sizes);
// The same as config.toml.
std::string config_toml(const Json& options);

// --metrics. Throws kUsage for a form that there is not.
MetricsForms metrics_forms(const Settings& settings);

// "mlp" for models/mlp/model.onnx, "net" for net.onnx: for the folder's name.
std::string run_name(const std::filesystem::path& model);

RunSession run_session(const Invocation& invocation, std::int64_t from_step);
Json model_facts(const OnnxModel& model);

// Ends early when `stop` says so.
void write_stages(RunWriter& writer, const Stages& stages, const std::function<bool()>& stop);

}  // namespace trainscope
