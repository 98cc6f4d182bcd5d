// The convergence check: token windows as stored, micro-batches of the graph's own batch size.
#include "engine/check/verify_convergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/check/batch_inputs.h"
#include "engine/check/gradients.h"
#include "engine/check/reference.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/session.h"

namespace trainscope {
namespace {

constexpr double kCurveLimit = 1e-5;       // relative
constexpr double kMixedCurveLimit = 1e-2;  // ... of mixed precision
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 30;

// Rows of token windows: the first `sequence` tokens in, the last `sequence` out.
class WindowBatches final : public BatchSource {
 public:
  WindowBatches(const std::string& tokens, std::int64_t sequence, std::int64_t rows)
      : tokens_(tokens), sequence_(sequence), rows_(rows) {
    Shape shape{rows, sequence};
    batch_.tensors.emplace_back("ids", Tensor({.dtype = DType::kI64, .shape = shape}));
    batch_.tensors.emplace_back("labels", Tensor({.dtype = DType::kI64, .shape = shape}));
  }
  const Batch& batch() const { return batch_; }
  // The window starts still to come.
  void set_starts(std::vector<std::int64_t> starts) {
    starts_ = std::move(starts);
    next_ = 0;
  }
  const Batch* next() override {
    if (next_ >= starts_.size()) return nullptr;
    auto ids = batch_.tensors[0].second.values<std::int64_t>();
    auto labels = batch_.tensors[1].second.values<std::int64_t>();
    batch_.examples = 0;
    for (std::int64_t row = 0; row < rows_; ++row) {
      bool padding = next_ >= starts_.size();
      std::int64_t start = padding ? 0 : starts_[next_++];
      if (!padding) ++batch_.examples;
      for (std::int64_t t = 0; t < sequence_; ++t) {
        auto at = static_cast<std::size_t>(row * sequence_ + t);
        ids[at] = token(start + t);
        labels[at] = padding ? -100 : token(start + t + 1);
      }
    }
    batch_.tokens = batch_.examples * sequence_;
    batch_.loss_terms = batch_.tokens;
    return &batch_;
  }

 private:
  std::int64_t token(std::int64_t at) const {
    return static_cast<unsigned char>(tokens_[static_cast<std::size_t>(at)]);
  }
  const std::string& tokens_;
  std::int64_t sequence_;
  std::int64_t rows_;
  std::vector<std::int64_t> starts_;
  std::size_t next_ = 0;
  Batch batch_;
};

// A number of things: as many as fit into memory, at least one.
std::int64_t count_in(const Json& json, std::string_view key) {
  constexpr std::int64_t kMostThings = std::int64_t{1} << 24;
  const auto count = json.get<std::int64_t>(key);
  require(count >= 1 && count <= kMostThings, ErrorCode::kBadInput,
          "key '{}' is {}: expected 1 to {}", key, count, kMostThings);
  return count;
}

struct Convergence {
  Json meta;
  std::string tokens;
  std::vector<std::int64_t> offsets;            // [steps, batch]
  std::vector<std::int64_t> validation_starts;  // of windows, as `offsets`
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;

  static Convergence open(const std::filesystem::path& folder) {
    Convergence c;
    c.meta = read_json_file(folder / "meta.json");
    c.steps = count_in(c.meta, "steps");
    c.batch = count_in(c.meta, "batch");
    c.sequence = count_in(c.meta, "seq");
    c.tokens = read_file(folder / "tokens.bin", kMaxFileBytes);
    std::string raw = read_file(folder / "offsets.bin", kMaxFileBytes);
    auto count = static_cast<std::size_t>(c.steps * c.batch);
    require(raw.size() == count * sizeof(std::int32_t), ErrorCode::kBadInput,
            "offsets.bin holds {} bytes, {} expected", raw.size(), count * sizeof(std::int32_t));
    std::vector<std::int32_t> offsets(count);
    std::memcpy(offsets.data(), raw.data(), raw.size());
    c.offsets.assign(offsets.begin(), offsets.end());
    for (std::int64_t offset : c.offsets) c.check_window("offsets.bin", offset);
    const Json& valid = c.meta.at("valid_starts");
    const auto first = valid.get<std::int64_t>("first");
    const std::int64_t step = count_in(valid, "step");
    const std::int64_t windows = count_in(valid, "count");
    c.check_window("valid_starts", first);
    for (std::int64_t k = 0; k < windows; ++k) c.validation_starts.push_back(first + k * step);
    c.check_window("valid_starts", c.validation_starts.back());
    return c;
  }
  void check_window(std::string_view where, std::int64_t start) const {
    const auto last = static_cast<std::int64_t>(tokens.size()) - sequence - 1;
    require(start >= 0 && start <= last, ErrorCode::kBadInput, "{}: window at {} of {} tokens",
            where, start, tokens.size());
  }
  std::vector<std::int64_t> starts_of(std::int64_t step) const {
    auto begin = offsets.begin() + (step - 1) * batch;
    return {begin, begin + batch};
  }
};

// The examples of the graph's own batch: 1 where it leaves their number open.
std::int64_t rows_of(const OnnxModel& model, const Convergence& data) {
  const std::vector<ModelTensor>& inputs = model.inputs();
  const bool has_batch = !inputs.empty() && inputs.front().dims && !inputs.front().dims->empty();
  require(has_batch, ErrorCode::kBadInput, "the model has no input with a batch dimension");
  const std::int64_t rows = inputs.front().dims->front().size.value_or(1);
  require(rows >= 1 && data.batch % rows == 0, ErrorCode::kBadInput,
          "a batch of {} rows is no whole number of the model's batches of {}", data.batch, rows);
  return rows;
}

double relative(double value, double expected) {
  return std::abs(value - expected) / std::abs(expected);
}

}  // namespace

VerifyReport verify_convergence(const std::filesystem::path& folder, const VerifyOptions& options) {
  Convergence data = Convergence::open(folder);
  // Not parent_path(): "folder/" is its own folder to that.
  std::filesystem::path model_folder = folder / ".." / data.meta.at("model").as_string();
  OnnxModel model = OnnxModel::read(model_folder / "model.onnx");
  ReferenceMeta meta = read_reference_meta(model_folder / "meta.json");
  ReferenceOptimizer optimizer = reference_optimizer(data.meta.at("optimizer"));
  ReferenceTable curves = ReferenceTable::read(folder / "curves.tsv", "step");
  ReferenceTable stored_validation = ReferenceTable::read(folder / "validation.tsv", "step");
  std::int64_t rows = rows_of(model, data);

  CompileOptions compile_options = reference_compile_options(meta, GraphMode::kTrain,
                                                             {.float_type = DType::kF32,
                                                              .values = {},
                                                              .lower = options.lower,
                                                              .passes = options.passes,
                                                              .device = options.device});
  compile_options.training.keep_gradients = false;
  compile_options.training.precision = options.precision;
  compile_options.training.optimizer = optimizer.options;
  compile_options.training.micro_batches = data.batch / rows;
  WindowBatches training(data.tokens, data.sequence, rows);
  WindowBatches validation(data.tokens, data.sequence, rows);
  bind_batch_sizes(model, meta.loss, training.batch(), compile_options.import);
  Session session(model, compile_options);
  Trainer trainer(session.shared_executor(), data.batch / rows);
  Schedule schedule{.learning_rate = optimizer.learning_rates.front(),
                    .warmup_steps = data.meta.at("optimizer").at("warmup").as_int()};

  const double limit = options.precision == StepPrecision::kF32 ? kCurveLimit : kMixedCurveLimit;
  VerifyReport report;
  report.folder = folder;
  double worst = 0.0;
  for (std::int64_t step = 0; step <= data.steps; ++step) {
    if (step > 0) {
      training.set_starts(data.starts_of(step));
      StepResult result = trainer.run_step(step, learning_rate_at(schedule, step), training);
      double expected = curves.number(std::to_string(step), "seed0_f64");
      double error = relative(result.loss, expected);
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
    if (!stored_validation.has(std::to_string(step))) continue;
    validation.set_starts(data.validation_starts);
    double loss = evaluate(session.executor(GraphMode::kEvaluate), validation).loss;
    double expected = stored_validation.number(std::to_string(step), "seed0_f64");
    report.add({"validation", fmt::format("step {}", step), relative(loss, expected), limit});
  }
  report.add({"losses", fmt::format("{} steps", data.steps), worst, limit});
  report.add({"plan", "used - predicted bytes",
              std::abs(static_cast<double>(session.executor().used_bytes() -
                                           session.executor().program().arena().bytes)),
              0.0});
  return report;
}

}  // namespace trainscope
