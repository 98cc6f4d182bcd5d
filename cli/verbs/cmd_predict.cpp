// predict: what a model makes of each example of the data, as a file.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/flags/training_flags.h"
#include "cli/source.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/run/forward_programs.h"
#include "engine/run/prediction.h"

namespace trainscope {
namespace {

constexpr Flag kPredictFlags[] = {
    {.name = "data",
     .value = "SPEC",
     .help = "As for train; all of its examples, in their order. Default: the run's"},
    {.name = "out",
     .value = "FILE",
     .help = "FILE.safetensors: each output with a row an example; FILE.csv: a line an example, a "
             "column for each number",
     .letter = 'o'},
};

// "logits" for one number an example, else "logits_0", "logits_1" ...
std::string csv_header(const std::vector<Prediction>& predictions) {
  std::string header;
  for (const Prediction& prediction : predictions) {
    const std::int64_t width = prediction.rows.elements() / prediction.rows.shape()[0];
    for (std::int64_t i = 0; i < width; ++i) {
      if (!header.empty()) header += ',';
      header += width == 1 ? prediction.name : fmt::format("{}_{}", prediction.name, i);
    }
  }
  return header;
}

// As few digits as tell the number from all others of its type.
std::string number_text(const Tensor& numbers, std::size_t at, DType dtype) {
  if (!is_float(dtype)) return fmt::format("{}", numbers.values<std::int64_t>()[at]);
  const double number = numbers.values<double>()[at];
  return dtype == DType::kF64 ? fmt::format("{}", number)
                              : fmt::format("{}", static_cast<float>(number));
}

std::string csv_text(const std::vector<Prediction>& predictions) {
  std::string text = csv_header(predictions) + "\n";
  const std::int64_t examples = predictions.front().rows.shape()[0];
  std::vector<Tensor> numbers;
  std::vector<DType> dtypes;
  for (const Prediction& prediction : predictions) {
    const DType dtype = prediction.rows.dtype();
    dtypes.push_back(dtype);
    numbers.push_back(convert(prediction.rows, is_float(dtype) ? DType::kF64 : DType::kI64));
  }
  for (std::int64_t row = 0; row < examples; ++row) {
    std::string line;
    for (std::size_t p = 0; p < predictions.size(); ++p) {
      const std::int64_t width = numbers[p].elements() / examples;
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (!line.empty()) line += ',';
        line += number_text(numbers[p], at, dtypes[p]);
      }
    }
    text += line + "\n";
  }
  return text;
}

void write_predictions(const std::vector<Prediction>& predictions, const std::string& out) {
  if (out.ends_with(".csv")) return write_file_atomic(out, csv_text(predictions));
  std::vector<NamedTensor> tensors;
  for (const Prediction& prediction : predictions) {
    tensors.push_back({.name = prediction.name, .tensor = prediction.rows.view()});
  }
  write_safetensors(out, tensors);
}

void require_all(const Settings& settings) {
  const bool has_data = settings.has("data");
  const bool has_out = settings.has("out");
  require(has_data && has_out, ErrorCode::kUsage, "predict needs {}{}{}", has_data ? "" : "--data",
          has_data || has_out ? "" : " and ", has_out ? "" : "-o FILE");
  const std::string& out = settings.text("out");
  require(out.ends_with(".csv") || out.ends_with(".safetensors"), ErrorCode::kUsage,
          "-o is '{}': expected FILE.safetensors or FILE.csv", printable(out));
}

// Every example of the data, without labels.
std::shared_ptr<const Dataset> open_examples(const Source& source, const Settings& settings,
                                             DatasetOptions wanted) {
  wanted.labels.reset();
  wanted.without_labels = true;
  if (source.is_run()) take_from_training(source.run().manifest().data, wanted);
  DataRequest request{
      .source = settings.text("data"), .validation_source = {}, .changes = image_changes(settings)};
  wanted.validation_fraction = 1.0;  // where the data say nothing of a split
  return open_data(request, std::move(wanted));
}

Outcome run_predict(const Invocation& invocation) {
  const Source source = Source::open(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  const Settings& settings = settled.settings();
  require_all(settings);
  Source::Trained trained = source.trained_model(settled);
  const Sizes sizes =
      resolve_sizes_with_data(trained.model, size_request(settings), settings.text("data"));
  require_examples(trained.model, sizes);
  CompileOptions options = forward_options(settled, sizes);
  options.lower.kernels = kernel_choice(settings);
  options.lower.same_bits = same_bits(settings);
  ForwardPrograms programs(trained.model, std::move(trained.checkpoint), options, sizes.batch_axes);
  const LossOptions no_loss{.kind = LossKind::kOutput};
  DatasetOptions wanted =
      dataset_options(programs.compiled(GraphMode::kInference), trained.model, no_loss, sizes);
  wanted.seed = settled.seed();
  const std::shared_ptr<const Dataset> data = open_examples(source, settings, std::move(wanted));
  require(data->examples(Split::kValidation) > 0, ErrorCode::kBadInput,
          "data '{}' have no examples", printable(settings.text("data")));
  const std::vector<Prediction> predictions =
      predict(programs, trained.model,
              {.data = data, .batch = sizes.batch, .batch_axes = sizes.batch_axes});
  const std::string& out = settings.text("out");
  write_predictions(predictions, out);
  Outcome outcome;
  outcome.facts = Json::object({{"model", invocation.argument(0)},
                                {"file", out},
                                {"examples", predictions.front().rows.shape()[0]}});
  outcome.text =
      fmt::format("wrote {} for {} examples:", printable(out), predictions.front().rows.shape()[0]);
  Json outputs = Json::array();
  for (const Prediction& prediction : predictions) {
    outputs.push_back(prediction.name);
    outcome.text +=
        fmt::format(" {} {}", printable(prediction.name), type_text(prediction.rows.type()));
  }
  outcome.facts.set("outputs", std::move(outputs));
  outcome.text += "\n";
  return outcome;
}

}  // namespace

Command predict_command() {
  return {.name = "predict",
          .summary = "Write what a model or run makes of each example of the data.",
          .arguments = {{.name = "MODEL.onnx|RUN", .help = "a model, or a run's folder"}},
          .flags = join_flags({kPredictFlags, normalize_flags(), source_flags(), size_flags(),
                               kernel_flags(), determinism_flags()}),
          .examples = {"trainscope predict runs/mlp-1 --data test.csv,label=kind -o scores.csv",
                       "trainscope predict model.onnx --data tensors:x.npz -o y.safetensors"},
          .run = run_predict};
}

}  // namespace trainscope
