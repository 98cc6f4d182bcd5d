// Loss, each gradient and all of them as one vector, in mixed precision.
#include "engine/check/verify_mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check/gradients.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr double kFactor = 8.0;       // over measured noise
constexpr double kLossShare = 0.125;  // of one rounding: a loss's noise may cancel by chance
constexpr double kVanishing = 1e-3;   // of the global gradient norm: what should be 0 is rounding
constexpr std::string_view kGradient = "grad.f64:";

const Json& noise_of(const ReferenceMeta& meta, StepPrecision precision) {
  const std::string_view key =
      precision == StepPrecision::kBF16 ? "bf16_operands" : "tf32_operands";
  const Json* noise = meta.json.find("noise");
  const Json* operands = noise == nullptr ? nullptr : noise->find(key);
  require(operands != nullptr, ErrorCode::kUsage,
          "{}: without noise.{} there are no limits for mixed precision",
          printable(meta.path.string()), key);
  return *operands;
}

// The largest relative error of rounding a number: half a unit in the last place.
double rounding_of(StepPrecision precision) {
  return precision == StepPrecision::kBF16 ? 0x1p-8 : 0x1p-11;
}

double number_of(const Tensor& tensor) { return convert(tensor, DType::kF64).values<double>()[0]; }

struct Gradients {
  const GradientsResult& result;
  const SafetensorsFile& reference;
  const ReferenceMeta& meta;
  const Json& noise;

  // A row for each parameter, and one for all.
  void compare(VerifyReport& report) const {
    const double global = meta.json.at("noise").at("grad_global_norm").as_number();
    const double each = noise.at("grad_param_rel_l2_max").as_number();
    double squares = 0.0;
    for (const SafetensorsEntry& entry : reference.entries()) {
      if (!entry.name.starts_with(kGradient)) continue;
      const std::string name = entry.name.substr(kGradient.size());
      const Tensor expected = reference.tensor(entry.name);
      const auto found = result.gradients.find(name);
      const double error = found == result.gradients.end() ? std::numeric_limits<double>::infinity()
                                                           : error_norm(found->second, expected);
      squares += error * error;
      report.add(
          {"grad", name, error, kFactor * std::max(each * norm(expected), kVanishing * global)});
    }
    report.add({"grads", "all", std::sqrt(squares) / global,
                kFactor * noise.at("grad_all_rel_l2").as_number()});
  }
};

}  // namespace

VerifyReport verify_mixed(const std::filesystem::path& folder, const VerifyOptions& options) {
  const ReferenceMeta meta = read_reference_meta(folder / "meta.json");
  const Json& noise = noise_of(meta, options.precision);
  const OnnxModel model = OnnxModel::read(folder / "model.onnx");
  const auto reference = SafetensorsFile::open(folder / "reference.safetensors");
  const GradientsResult result =
      compute_gradients(model, meta, reference_batch(reference, 0, DType::kF32),
                        {.float_type = DType::kF32,
                         .precision = options.precision,
                         .values = {},
                         .lower = options.lower,
                         .passes = options.passes,
                         .device = options.device});
  VerifyReport report;
  report.folder = folder;
  const double expected = number_of(reference.tensor("loss.f64:0"));
  report.add({"loss", std::string(name_of(options.precision)),
              std::abs(number_of(result.loss) - expected) / std::abs(expected),
              std::max(kFactor * noise.at("loss_rel").as_number(),
                       kLossShare * rounding_of(options.precision))});
  Gradients{.result = result, .reference = reference, .meta = meta, .noise = noise}.compare(report);
  report.add({"plan", "gradients: used - predicted bytes",
              std::abs(static_cast<double>(result.used_bytes - result.arena_bytes)), 0.0});
  return report;
}

}  // namespace trainscope
