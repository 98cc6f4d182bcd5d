// The training step: bind, forward, backward, check, update.
#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "engine/ranks/rank_calls.h"
#include "engine/train/bad_loss.h"
#include "engine/train/checkpoint.h"

namespace trainscope {
namespace {

// Scalars of the step; a program without a use for one has no bytes for it.
void write_scalar(Executor& executor, ValueId value, double number) {
  if (value != kNoValue) executor.memory().write_scalar(value, number);
}

// States of the optimizer carry our prefix; sums over micro-batches do not outlive a step.
std::vector<NamedTensor> tensors(const std::shared_ptr<Executor>& executor, bool of_optimizer) {
  std::vector<NamedTensor> list;
  const Graph& graph = executor->program().graph;
  for (ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kState) continue;
    if (value.name.starts_with(kAccumulatedPrefix)) continue;
    bool own = value.kind == ValueKind::kState && value.name.starts_with(kOwnPrefix);
    if (own != of_optimizer) continue;
    list.push_back({.name = value.name,
                    .tensor = {.type = value.type},
                    .read = [executor, id](std::uint64_t offset, std::span<std::byte> bytes) {
                      executor->memory().read_bytes(id, offset, bytes);
                    }});
  }
  return list;
}

// Only outputs still have their bytes when a step is done.
bool is_output(const Executor& executor, std::string_view name) {
  const Graph& graph = executor.program().graph;
  return executor.has(name) && graph.is_output(graph.find(name));
}

// `scores` keeps its memory from batch to batch.
LabelCount count_batch(const Executor& executor, const Batch& batch, const ScoredClasses& classes,
                       Tensor& scores) {
  for (const auto& [name, tensor] : batch.tensors) {
    if (name != classes.labels) continue;
    executor.memory().read_into(classes.output, scores);
    return count_correct(scores.view(), tensor.view(), classes);
  }
  return {};
}

void add(const LabelCount& more, LabelCount& sum) {
  sum.labels += more.labels;
  sum.correct += more.correct;
}

}  // namespace

void bind_batch(Executor& executor, const Batch& batch) {
  for (const auto& [name, tensor] : batch.tensors) {
    const ValueId input = executor.memory().kept(name);
    if (input != kNoValue) executor.memory().write(input, tensor);
  }
}

double read_loss(const Executor& executor) {
  return executor.memory().read_scalar(executor.program().graph.loss);
}

Trainer::Trainer(std::shared_ptr<Executor> executor, std::int64_t micro_batches,
                 std::shared_ptr<Communicator> ranks)
    : executor_(std::move(executor)), micro_batches_(micro_batches), ranks_(std::move(ranks)) {
  const ProgramMemory& memory = executor_->memory();
  step_input_ = memory.kept(kStepInput);
  learning_rate_input_ = memory.kept(kLearningRateInput);
  micro_step_input_ = memory.kept(kMicroStepInput);
  random_step_input_ = memory.kept(kRandomStepInput);
  gradient_norm_ = memory.kept(kGradientNormOutput);
  const Graph& graph = executor_->program().graph;
  for (ValueId output : graph.outputs) {
    const std::string& name = graph.value(output).name;
    if (!name.starts_with(kLossTermPrefix)) continue;
    terms_.emplace_back(name.substr(std::string_view(kLossTermPrefix).size()), output);
  }
  report_.resize(report_of(micro_batches_) + 2);
  reports_.resize(report_.size() * static_cast<std::size_t>(this->ranks()));
}

// Where a rank's report has the loss of the micro-batch; of their number: the examples.
std::size_t Trainer::report_of(std::int64_t micro_batch) const {
  return static_cast<std::size_t>(micro_batch) * (1 + terms_.size());
}

void Trainer::tell_ranks(const StepPlace& at, StepEvents& events) {
  if (ranks_ == nullptr) {
    reports_ = report_;
    return;
  }
  events.rank_wait_begin(at);
  gather(*ranks_, report_, reports_);
  events.rank_wait_end(at);
}

void Trainer::check_ranks(std::int64_t step) const {
  for (int r = 0; r < ranks(); ++r) {
    for (std::int64_t i = 0; i < micro_batches_; ++i) {
      const double loss = report_of_rank(r)[report_of(i)];
      require(std::isfinite(loss), ErrorCode::kNumeric, "the loss of rank {} is {} in step {}", r,
              loss, step);
    }
  }
}

std::span<const double> Trainer::report_of_rank(int rank) const {
  return std::span(reports_).subspan(report_.size() * static_cast<std::size_t>(rank),
                                     report_.size());
}

// Added up in the order in which one process has the micro-batches.
StepResult Trainer::result_of_ranks() const {
  StepResult result;
  const auto all = static_cast<double>(micro_batches_ * ranks());
  for (const auto& [name, value] : terms_) result.terms.emplace_back(name, 0.0);
  for (int r = 0; r < ranks(); ++r) {
    const std::span<const double> report = report_of_rank(r);
    for (std::int64_t i = 0; i < micro_batches_; ++i) {
      const auto numbers = report.subspan(report_of(i), 1 + terms_.size());
      result.loss += numbers[0] / all;
      for (std::size_t k = 0; k < terms_.size(); ++k)
        result.terms[k].second += numbers[1 + k] / all;
    }
    result.examples += static_cast<std::int64_t>(report[report_of(micro_batches_)]);
    result.tokens += static_cast<std::int64_t>(report[report_of(micro_batches_) + 1]);
  }
  return result;
}

const Batch& Trainer::next_batch(BatchSource& batches, const StepPlace& at, StepEvents& events) {
  events.batch_wait_begin(at);
  const auto start = std::chrono::steady_clock::now();
  const Batch* batch = batches.next();
  const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - start;
  CHECK_INVARIANT(batch != nullptr);
  events.batch_wait_end(at, waited.count());
  return *batch;
}

// Its loss, which the report has too. Behind the last one, and where the loss is no number and this
// rank goes no further, all ranks have the reports of all.
double Trainer::run_micro_step(const Batch& batch, const StepPlace& at, StepEvents& events) {
  events.step_part_begin(StepPart::kMicroStep, at);
  events.inputs_begin(at);
  bind(batch, at);
  events.inputs_end(at);
  executor_->run_micro_step();
  events.results_begin(at);
  double* numbers = &report_[report_of(at.micro_batch)];
  numbers[0] = read_loss(*executor_);
  for (std::size_t k = 0; k < terms_.size(); ++k) {
    numbers[1 + k] = executor_->memory().read_scalar(terms_[k].second);
  }
  report_[report_of(micro_batches_)] += static_cast<double>(batch.examples);
  report_[report_of(micro_batches_) + 1] += static_cast<double>(batch.tokens);
  const bool is_last = at.micro_batch + 1 == micro_batches_;
  if (is_last || !std::isfinite(numbers[0])) tell_ranks(at, events);
  events.results_end(at);
  events.step_part_end(StepPart::kMicroStep, at);
  return numbers[0];
}

StepResult Trainer::run_update(const StepPlace& at, StepEvents& events) {
  events.step_part_begin(StepPart::kUpdate, at);
  executor_->run_update();
  events.results_begin(at);
  StepResult result = result_of_ranks();
  if (gradient_norm_ != kNoValue) {
    result.gradient_norm = executor_->memory().read_scalar(gradient_norm_);
  }
  events.results_end(at);
  events.step_part_end(StepPart::kUpdate, at);
  return result;
}

StepResult Trainer::run_step(std::int64_t step, double learning_rate, BatchSource& batches,
                             StepEvents* events) {
  StepEvents nobody;
  StepEvents& told = events == nullptr ? nobody : *events;
  StepPlace at{.step = step};
  told.inputs_begin(at);
  std::ranges::fill(report_, 0.0);
  write_scalar(*executor_, step_input_, static_cast<double>(step));
  write_scalar(*executor_, learning_rate_input_, learning_rate);
  told.inputs_end(at);
  for (; at.micro_batch < micro_batches_; ++at.micro_batch) {
    const Batch& batch = next_batch(batches, at, told);
    const double loss = run_micro_step(batch, at, told);
    if (!std::isfinite(loss)) {
      told.bad_loss(at, batch, loss);
      bind(batch, at);  // the step has used these bytes for other tensors
      throw bad_loss_error(*executor_, loss, step, unmarked_);
    }
  }
  check_ranks(step);
  return run_update(at, told);
}

// A rank's micro-batches come after those of the ranks before it, as in one process with all.
void Trainer::bind(const Batch& batch, const StepPlace& at) {
  bind_batch(*executor_, batch);
  write_scalar(*executor_, micro_step_input_, static_cast<double>(at.micro_batch));
  const std::int64_t in_step = rank() * micro_batches_ + at.micro_batch;
  write_scalar(*executor_, random_step_input_,
               static_cast<double>(at.step * micro_batches_ * ranks() + in_step));
}

std::vector<NamedTensor> Trainer::model_tensors() const { return tensors(executor_, false); }
std::vector<NamedTensor> Trainer::optimizer_tensors() const { return tensors(executor_, true); }

void Trainer::restore(const SafetensorsFile& file, std::span<const NamedTensor> tensors) {
  restore_tensors(file, tensors, [this](std::string_view name, const Tensor& elements) {
    executor_->write(name, elements);
  });
}

void Trainer::swap_averages() {
  const Graph& graph = executor_->program().graph;
  for (ValueId id : graph.values_of(ValueKind::kParameter)) {
    const Value& parameter = graph.value(id);
    const ValueId average = graph.find(kAveragePrefix + parameter.name);
    if (average == kNoValue) continue;
    const std::string& name = graph.value(average).name;
    const Tensor of_parameter = executor_->read(parameter.name);
    executor_->write(parameter.name, executor_->read(name));
    executor_->write(name, of_parameter);
  }
}

std::optional<double> Evaluation::accuracy() const {
  if (counted.labels == 0) return std::nullopt;
  return static_cast<double>(counted.correct) / static_cast<double>(counted.labels);
}

Evaluation evaluate(Executor& executor, BatchSource& batches,
                    const std::optional<ScoredClasses>& classes, BatchWeight weight) {
  Evaluation result;
  const bool counts = classes && is_output(executor, classes->output);
  Tensor scores;
  double sum = 0.0;
  std::int64_t weights = 0;
  while (const Batch* batch = batches.next()) {
    bind_batch(executor, *batch);
    executor.run_micro_step();
    const std::int64_t own = weight == BatchWeight::kExamples ? batch->examples : batch->loss_terms;
    if (own > 0) sum += read_loss(executor) * static_cast<double>(own);
    if (counts) add(count_batch(executor, *batch, *classes, scores), result.counted);
    weights += own;
    result.examples += batch->examples;
    result.tokens += batch->tokens;
  }
  result.loss = sum / static_cast<double>(weights);
  return result;
}

}  // namespace trainscope
