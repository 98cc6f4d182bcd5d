// A ring of samples for each call, and their medians.
#include "engine/op_times.h"

#include <algorithm>
#include <utility>

#include "engine/core/numbers.h"
#include "engine/core/saturating.h"
#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"
#include "engine/recompute/costs.h"

namespace trainscope {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// What the call's kernel does, of a node whose op costs `definition`.
Cost done_by(const Call& call, int threads, const Cost& definition) {
  if (call.kernel == nullptr) return definition;
  const auto views_of = [](const std::vector<Operand>& operands) {
    std::vector<TensorView> views;
    for (const Operand& operand : operands) {
      views.push_back({.type = operand.type, .present = operand.value != kNoValue});
    }
    return views;
  };
  const std::vector<TensorView> inputs = views_of(call.inputs);
  const std::vector<TensorView> outputs = views_of(call.outputs);
  return cost_of(*call.kernel,
                 {.params = call.params, .inputs = inputs, .outputs = outputs, .threads = threads},
                 definition);
}

}  // namespace

// Work that a device has queued is part of the call, and of no other.
void OpTimes::wait_for_device() const {
  Device& device = *program_->device;
  for (const Stream stream : {kTransferStream, kComputeStream}) {
    check(device.synchronize(device.record(stream)));
  }
}

OpTimes::OpTimes(std::shared_ptr<const Program> program)
    : program_(std::move(program)), samples_(program_->calls.size()) {}

void OpTimes::call_begin(const CallEvent& event) {
  if (!is_seen(event)) return;
  wait_for_device();
  start_ = std::chrono::steady_clock::now();
  (is_first_ ? step_.before : step_.between) += seconds_between(end_, start_);
  is_first_ = false;
}

void OpTimes::call_end(const CallEvent& event) {
  if (!is_seen(event)) return;
  wait_for_device();
  end_ = std::chrono::steady_clock::now();
  const double elapsed = seconds_between(start_, end_);
  Samples& samples = samples_[static_cast<std::size_t>(event.call)];
  samples.seconds[samples.count++ % kSamples] = static_cast<float>(elapsed);
  step_.kernels += elapsed;
}

void OpTimes::begin_step() {
  step_ = {};
  is_first_ = true;
  end_ = std::chrono::steady_clock::now();
}

StepSplit OpTimes::end_step() {
  step_.after = seconds_between(end_, std::chrono::steady_clock::now());
  return step_;
}

std::vector<double> OpTimes::seconds() const {
  std::vector<double> result(program_->graph.node_capacity(), 0.0);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Samples& samples = samples_[i];
    const Call& call = program_->calls[i];
    const std::size_t count = std::min(samples.count, kSamples);
    if (count == 0 || call.kind == CallKind::kStateCopy) continue;
    const auto first = samples.seconds.begin();
    result[static_cast<std::size_t>(call.node)] +=
        median({first, first + static_cast<std::ptrdiff_t>(count)});
  }
  return result;
}

std::vector<OpTime> OpTimes::rows() const {
  const Graph& graph = program_->graph;
  const std::vector<double> of_nodes = seconds();
  std::vector<OpTime> rows;
  for (const CallId id : calls_by_time(*program_)) {
    const Call& call = program_->call(id);
    const Node& node = graph.node(call.node);
    const auto made = std::ranges::find_if(node.outputs, [](ValueId v) { return v != kNoValue; });
    NodeArgs args(graph, node);
    const Cost cost = cost_of(*node.op, *args);
    rows.push_back(
        {.value = graph.value(*made).name,
         .op = std::string(node.op->name),
         .kernel = std::string(call.kernel == nullptr ? name_of(call.kind) : call.kernel->name),
         .phase = node.phase,
         .flops = cost.flops,
         .bytes = saturating_add(cost.bytes_read, cost.bytes_written),
         .done = done_by(call, program_->threads, cost),
         .seconds = of_nodes[static_cast<std::size_t>(call.node)]});
  }
  return rows;
}

std::vector<double> seconds_alone(const std::shared_ptr<const Program>& program) {
  Executor executor(program);
  executor.load_initial();
  std::vector<double> seconds(program->graph.node_capacity(), 0.0);
  for (std::size_t i = 0; i < program->calls.size(); ++i) {
    const auto node = static_cast<std::size_t>(program->calls[i].node);
    seconds[node] += executor.seconds_of_next();
    executor.run_until(CallId(static_cast<std::int32_t>(i) + 1));
  }
  return seconds;
}

void write_seconds_alone(const std::filesystem::path& path,
                         const std::shared_ptr<const Program>& program) {
  write_node_seconds(path, program->graph, seconds_alone(program));
}

void OpTimes::write(const std::filesystem::path& path) const {
  write_node_seconds(path, program_->graph, seconds());
}

}  // namespace trainscope
