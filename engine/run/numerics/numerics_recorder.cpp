// Rows from the calls of a step as they end, and from parameters and states after it.
#include "engine/run/numerics/numerics_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "engine/run/numerics/oracle.h"
#include "engine/run/numerics/trace_rows.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TracePhase;
using profiler::TraceRow;

// Tensors are read in pieces of so many bytes: a copy of the largest may not fit.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

double scalar_of(const Tensor& tensor) { return convert(tensor, DType::kF64).values<double>()[0]; }

// In f32: f16 has no room for small gradients.
Tensor divided(const Tensor& tensor, double divisor) {
  Tensor result = convert(tensor, DType::kF32);
  for (float& element : result.values<float>()) {
    element = static_cast<float>(static_cast<double>(element) / divisor);
  }
  return result;
}

bool makes_tensors(CallKind kind) {
  return kind == CallKind::kKernel || kind == CallKind::kAddPartials || kind == CallKind::kProgram;
}

}  // namespace

bool is_recorded_by_default(std::int64_t step, std::int64_t last) {
  if (step == last) return true;
  std::int64_t power = 1;
  while (power * 10 <= step) power *= 10;
  return step == power || step == 2 * power || step == 5 * power;
}

NumericsRecorder::NumericsRecorder(NumericsRequest request, RecordedRun run)
    : request_(std::move(request)),
      run_(std::move(run)),
      executor_(run_.executor),
      unfused_(request_.all_values ? std::make_unique<const UnfusedStep>(run_.model, run_.compile)
                                   : nullptr),
      oracle_due_(request_.oracle),
      wanted_(request_),
      writer_(run_.folder, run_.header) {}

void NumericsRecorder::session_begin(const SessionFacts& facts) {
  values_.emplace(facts.compiled->stages, facts.compiled->program.graph, ViewRows::kOfTheViewed);
  const std::vector<profiler::TraceName>& names =
      (unfused_ ? unfused_->values() : *values_).names();
  wanted_.know(names);
  writer_.write_names(wanted_.recorded(names));
  last_ = facts.to_step;
  step_ = facts.from_step;
  record_states();
  writer_.flush();
  write_elements();
  step_ = 0;
}

bool NumericsRecorder::wants(std::int64_t step) const {
  if (request_.steps.empty()) return is_recorded_by_default(step, last_);
  return std::ranges::find(request_.steps, step) != request_.steps.end();
}

void NumericsRecorder::step_begin(std::int64_t step) {
  listens_ = {};
  if (!wants(step)) return;
  step_ = step;
  order_ = 0;
  micro_batch_ = 0;
  listens_ = executor_->listen(*this);
}

void NumericsRecorder::step_part_begin(StepPart part, const StepPlace& at) {
  if (step_ == 0) return;
  in_part_ = true;
  micro_batch_ = at.micro_batch;
  if (executor_->has(kLossScaleState)) loss_scale_ = scalar_of(executor_->read(kLossScaleState));
  if (computes_again() && part == StepPart::kMicroStep) read_states();
}

void NumericsRecorder::step_part_end(StepPart part, const StepPlace& /*at*/) {
  if (step_ == 0) return;
  in_part_ = false;
  if (part == StepPart::kMicroStep) {
    if (computes_again()) compute_again();
    return;
  }
  micro_batch_ = 0;
  record_states();
}

void NumericsRecorder::step_end(const StepRecord& /*step*/, std::int64_t /*used_bytes*/) {
  if (step_ == 0) return;
  listens_ = {};
  writer_.flush();
  write_elements();
  step_ = 0;
  ++recorded_;
}

void NumericsRecorder::copy_end(const CopyEvent& event) {
  if (!in_part_) return;
  const Value& value = executor_->program().graph.value(event.value);
  if (event.kind != CopyKind::kBind || value.kind != ValueKind::kInput) return;
  const bool of_batch = !value.name.starts_with(kOwnPrefix);
  if (computes_again()) {
    (of_batch ? batch_ : given_).insert_or_assign(value.name, executor_->read(value.name));
  }
  if (of_batch) record_kept(event.value, TracePhase::kInput);
}

void NumericsRecorder::call_end(const CallEvent& event) {
  if (!in_part_ || event.within != kNoCall || unfused_ != nullptr) return;
  const Call& call = executor_->program().call(event.call);
  if (!makes_tensors(call.kind) || call.phase == Phase::kUpdate) return;
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (output.value == kNoValue || output.slice == TileSlice::kPartial) continue;
    record_output(event.call, k);
  }
}

// The next row of the step.
TraceRow NumericsRecorder::row_of(const Graph& graph, ValueId value, const TracedAs& as) {
  TraceRow row = trace_row(graph, value, as);
  row.step = step_;
  row.micro_batch = micro_batch_;
  row.order = order_++;
  return row;
}

// What a row's elements are divided by: gradients are recorded without the loss scale.
double NumericsRecorder::divisor_of(const TracedAs& as) const {
  return is_gradient(as) ? loss_scale_ : 1.0;
}

void NumericsRecorder::finish_row(TraceRow row, profiler::TensorSummary summary, double divisor) {
  summary.divide(divisor);
  row.statistics = summary.statistics;
  row.hash = summary.hash;
  writer_.add(row, summary.sketch);
}

// What the micro-step about to begin reads of them: batch norms, and updates in the backward phase,
// have changed some when it ends.
void NumericsRecorder::read_states() {
  given_.clear();
  batch_.clear();
  const Graph& graph = executor_->program().graph;
  for (const ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kState) continue;
    const bool of_model = !value.name.starts_with(kOwnPrefix) && executor_->has(value.name);
    if (of_model) given_.emplace(value.name, executor_->read(value.name));
  }
}

void NumericsRecorder::compute_again() {
  if (unfused_ != nullptr) {
    std::map<std::string, Tensor> given = given_;
    given.insert(batch_.begin(), batch_.end());
    unfused_->run(given, [this](ValueId id, const Tensor& tensor) { record_unfused(id, tensor); });
  }
  if (oracle_due_) record_oracle();
  given_.clear();
  batch_.clear();
}

// Of the session's first recorded step. A run goes on without it: it takes the memory of some f64
// values, and ops that have no kernel for them.
void NumericsRecorder::record_oracle() {
  oracle_due_ = false;
  std::vector<OracleRow> rows;
  try {
    rows = Oracle(run_.model, run_.compile).rows(batch_, run_.batch_axes, given_);
  } catch (const std::exception& exception) {
    run_.log->warning("numerics: no noise is measured: {}", error_of(exception).message());
    return;
  }
  profiler::TraceHeader header = run_.header;
  header.producer = "trainscope f64";
  header.mode = "all";
  profiler::TraceWriter truth(run_.folder.make(profiler::kTraceOracleFolder), header);
  std::vector<profiler::TraceNoise> noise;
  for (OracleRow& row : rows) {
    row.row.step = step_;
    truth.add(row.row, row.sketch);
    if (row.noise) noise.push_back({.key = row.row.key(), .relative = *row.noise});
    if (row.step_noise && step_ == 1) {  // later ones start from moments
      row.row.kind = TraceKind::kParameter;
      noise.push_back({.key = row.row.key(), .relative = *row.step_noise});
    }
  }
  truth.write_noise(noise);
  truth.sync();
}

void NumericsRecorder::record_unfused(ValueId id, const Tensor& tensor) {
  const TracedAs& as = unfused_->values().of(id);
  if (!wanted_.has(as)) return;
  TraceRow row = row_of(unfused_->graph(), id, as);
  const std::span<const std::byte> bytes(tensor.data(), tensor.bytes());
  const profiler::TensorSummary summary = profiler::summary_of(tensor.dtype(), bytes, threads());
  const double divisor = unfused_->divisor_of(as);
  if (wanted_.has_elements(as))
    keep_elements(row, tensor.type(), {bytes.begin(), bytes.end()}, divisor);
  finish_row(std::move(row), summary, divisor);
}

// Slices of one tensor come in their order: batch tiles run in turn.
void NumericsRecorder::record_output(CallId id, std::size_t k) {
  const Program& program = executor_->program();
  const Call& call = program.call(id);
  const Operand& output = call.outputs[k];
  const TensorType& type = program.graph.value(output.value).type;
  const TracedAs& as = values_->of(output.value);
  const auto found =
      unfinished_
          .try_emplace(output.value,
                       Unfinished{.summarizer = profiler::TensorSummarizer(type.dtype, threads())})
          .first;
  Unfinished& tensor = found->second;
  const bool keep = wanted_.has_elements(as);
  const auto bytes = static_cast<std::uint64_t>(output.type.bytes());
  for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
    piece_.resize(std::min<std::uint64_t>(kPieceBytes, bytes - at));
    executor_->read_output(id, k, at, piece_);
    tensor.summarizer.add(piece_);
    if (keep) tensor.elements.insert(tensor.elements.end(), piece_.begin(), piece_.end());
  }
  tensor.done += output.type.elements();
  if (tensor.done < type.elements()) return;
  TraceRow row = row_of(program.graph, output.value, as);
  if (call.kernel != nullptr) row.kernel = std::string(call.kernel->name);
  if (keep) keep_elements(row, type, std::move(tensor.elements), divisor_of(as));
  finish_row(std::move(row), tensor.summarizer.summary(), divisor_of(as));
  unfinished_.erase(found);
}

void NumericsRecorder::record_kept(ValueId value, TracePhase phase) {
  const TensorType& type = executor_->program().graph.value(value).type;
  profiler::TensorSummarizer summarizer(type.dtype, threads());
  const bool keep = wanted_.has_elements(values_->of(value));
  std::vector<std::byte> elements;
  const auto bytes = static_cast<std::uint64_t>(type.bytes());
  for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
    piece_.resize(std::min<std::uint64_t>(kPieceBytes, bytes - at));
    executor_->memory().read_bytes(value, at, piece_);
    summarizer.add(piece_);
    if (keep) elements.insert(elements.end(), piece_.begin(), piece_.end());
  }
  TraceRow row = row_of(executor_->program().graph, value, values_->of(value));
  row.phase = phase;
  if (keep) keep_elements(row, type, std::move(elements), 1.0);
  finish_row(std::move(row), summarizer.summary(), 1.0);
}

// Parameters, running statistics and moments, but not sums over micro-batches.
void NumericsRecorder::record_states() {
  const Graph& graph = executor_->program().graph;
  for (const ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kState) continue;
    if (value.name.starts_with(kAccumulatedPrefix) || !executor_->has(value.name)) continue;
    if (!wanted_.has(values_->of(id))) continue;
    record_kept(id, TracePhase::kUpdate);
  }
}

void NumericsRecorder::keep_elements(const TraceRow& row, const TensorType& type,
                                     std::vector<std::byte> bytes, double divisor) {
  Tensor tensor(type);
  std::ranges::copy(bytes, tensor.data());
  if (divisor != 1.0) tensor = divided(tensor, divisor);
  if (trainscope::row_of(tensor.dtype()).safetensors_name.empty()) {  // the format has no such type
    tensor = convert(tensor, is_float(tensor.dtype()) ? DType::kF32 : DType::kI64);
  }
  const std::string micro = row.micro_batch > 0 ? fmt::format("@{}", row.micro_batch) : "";
  elements_.emplace_back(row.key() + micro, std::move(tensor));
}

void NumericsRecorder::write_elements() {
  if (elements_.empty()) return;
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : elements_) {
    tensors.push_back({.name = name, .tensor = tensor.view()});
  }
  const Folder full = run_.folder.make(profiler::kTraceFullFolder);
  write_safetensors(full / fmt::format("{}.safetensors", step_), tensors);
  elements_.clear();
}

void NumericsRecorder::close() {
  listens_ = {};
  writer_.sync();
}

void NumericsRecorder::session_end(RunStatus /*status*/) {
  close();
  run_.log->info("numerics: {} steps, {} tensors, {}", recorded_, writer_.rows(),
                 human_bytes(writer_.bytes()));
}

// Of a step that failed there is what it made.
void NumericsRecorder::session_failed(const Error& /*error*/) {
  close();
  if (step_ != 0) write_elements();
}

}  // namespace trainscope
