// Execution: pointers are resolved once, a step is a loop over calls.
#include "engine/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

template <typename T>
void count_bad(const TensorView& view, BadTensor& bad) {
  const T* data = view.as<const T>();
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const Computed<T> number = data[i];
    if (std::isnan(number)) ++bad.nan;
    if (std::isinf(number) && number > Computed<T>{0}) ++bad.infinite;
  }
}

BadTensor inspect(const TensorView& view) {
  BadTensor bad;
  bad.elements = view.elements();
  if (view.type.dtype == DType::kF32) count_bad<float>(view, bad);
  if (view.type.dtype == DType::kF64) count_bad<double>(view, bad);
  if (view.type.dtype == DType::kBF16) count_bad<BFloat16>(view, bad);
  if (view.type.dtype == DType::kF16) count_bad<Float16>(view, bad);
  return bad;
}

}  // namespace

Executor::Executor(const Program& program, const Executor* parameters)
    : program_(program), arena_(program.arena_bytes), host_arena_(program.host.bytes) {
  start_cpu_threads(program.threads);
  views_.resize(program.graph.value_capacity());
  for (ValueId id : program.graph.live_values()) by_name_.emplace(program.graph.value(id).name, id);
  for (std::size_t v = 0; v < views_.size(); ++v) {
    views_[v] = bind(static_cast<ValueId>(v), parameters);
    bool persistent = views_[v].data != nullptr && !program.placements[v].external &&
                      program.graph.value(static_cast<ValueId>(v)).kind != ValueKind::kNode;
    if (persistent) used_bytes_ = std::max(used_bytes_, end_of(static_cast<ValueId>(v)));
  }
  for (const Instruction& instruction : program.instructions) {
    const Node& node = program.graph.node(instruction.node);
    Bound bound;
    bound.whole = call_of(instruction);
    bound.parts = parts_of(instruction, bound.whole);
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (ValueId v : *values) {
        bound.end_bytes = std::max(bound.end_bytes, end_of(v));
        bound.host_end_bytes = std::max(bound.host_end_bytes, end_of(v, true));
      }
    }
    auto workspace_bytes = static_cast<std::int64_t>(instruction.prepared.workspace_bytes);
    if (workspace_bytes > 0) {
      std::int64_t unit = program.problem.alignment_bytes;
      std::int64_t end = instruction.workspace_offset + (workspace_bytes + unit - 1) / unit * unit;
      bound.end_bytes = std::max(bound.end_bytes, end);
    }
    calls_.push_back(std::move(bound));
  }
}

Executor::Call Executor::call_of(const Instruction& instruction) const {
  const Node& node = program_.graph.node(instruction.node);
  const auto view_of = [this](ValueId v) {
    return v == kNoValue ? TensorView{.type = {}, .data = nullptr, .present = false}
                         : views_[static_cast<std::size_t>(v)];
  };
  Call call;
  for (ValueId v : node.inputs) call.inputs.push_back(view_of(v));
  for (ValueId v : node.outputs) call.outputs.push_back(view_of(v));
  if (instruction.prepared.workspace_bytes > 0) {
    call.workspace = arena_.data() + instruction.workspace_offset;
  }
  return call;
}

namespace {

// Part p of a value that is cut into equal parts.
TensorView part_view(TensorView view, std::size_t p, std::size_t parts) {
  const std::size_t bytes = view.type.bytes() / parts;
  view.type.shape[0] /= static_cast<std::int64_t>(parts);
  view.data = static_cast<std::byte*>(view.data) + p * bytes;
  return view;
}

}  // namespace

std::vector<Executor::Call> Executor::parts_of(const Instruction& instruction,
                                               const Call& whole) const {
  const InParts& in_parts = instruction.parts;
  const std::size_t parts = in_parts.prepared.size();
  auto* summands = static_cast<std::byte*>(whole.workspace) +
                   parts * static_cast<std::size_t>(in_parts.part_workspace_bytes);
  std::vector<Call> calls(parts, whole);
  for (std::size_t p = 0; p < parts; ++p) {
    Call& call = calls[p];
    const std::size_t workspace_bytes = static_cast<std::size_t>(in_parts.part_workspace_bytes);
    if (whole.workspace != nullptr) {
      call.workspace = static_cast<std::byte*>(whole.workspace) + p * workspace_bytes;
    }
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      if (in_parts.inputs[k] != PartOf::kExamples) continue;
      call.inputs[k] = part_view(call.inputs[k], p, parts);
    }
    for (std::size_t k = 0; k < call.outputs.size(); ++k) {
      TensorView& output = call.outputs[k];
      if (in_parts.outputs[k] == PartOf::kExamples) output = part_view(output, p, parts);
      if (in_parts.outputs[k] != PartOf::kSummand || p == 0) continue;
      output.data = summands;
      summands += (output.type.bytes() + 63) / 64 * 64;
    }
  }
  return calls;
}

TensorView Executor::bind(ValueId value, const Executor* parameters) const {
  const Value& v = program_.graph.value(value);
  const Placement& placement = program_.placements[static_cast<std::size_t>(value)];
  TensorView view{.type = v.type, .data = nullptr};
  if (v.erased || placement.buffer < 0) return view;
  if (!placement.external) {
    view.data = (placement.host ? host_arena_ : arena_).data() + placement.offset;
    return view;
  }
  // Views of an external parameter share its bytes: the buffer carries the parameter's name.
  CHECK_INVARIANT(parameters != nullptr);
  const std::string& name = program_.problem.buffers[static_cast<std::size_t>(placement.buffer)].id;
  view.data = parameters->view(name).data;
  return view;
}

std::int64_t Executor::end_of(ValueId value, bool host) const {
  if (value == kNoValue) return 0;
  const Placement& placement = program_.placements[static_cast<std::size_t>(value)];
  if (placement.buffer < 0 || placement.external || placement.host != host) return 0;
  const memplan::Problem& problem = host ? program_.host.problem : program_.problem;
  const memplan::Solution& solution = host ? program_.host.solution : program_.solution;
  const auto buffer = static_cast<std::size_t>(placement.buffer);
  std::int64_t unit = problem.alignment_bytes;
  return solution.offsets[buffer] + (problem.buffers[buffer].size_bytes + unit - 1) / unit * unit;
}

void Executor::load_initial() {
  for (ValueId id : program_.graph.live_values()) {
    const Value& value = program_.graph.value(id);
    const Placement& placement = program_.placements[static_cast<std::size_t>(id)];
    if (value.kind == ValueKind::kNode || value.kind == ValueKind::kInput) continue;
    if (placement.buffer < 0 || placement.external || value.type.bytes() == 0) continue;
    void* to = views_[static_cast<std::size_t>(id)].data;
    if (value.data) {
      std::memcpy(to, value.data->data(), value.type.bytes());
    } else {
      std::memset(to, 0, value.type.bytes());
    }
  }
}

// These run in a step: a message is made only when it is needed.
TensorView Executor::view(ValueId value) const {
  const TensorView& view = views_[static_cast<std::size_t>(value)];
  if (view.data != nullptr || view.type.bytes() == 0) return view;
  fail(ErrorCode::kUsage, "the program keeps no bytes for '{}'",
       printable(program_.graph.value(value).name));
}

ValueId Executor::find(std::string_view value_name) const {
  auto found = by_name_.find(value_name);
  return found == by_name_.end() ? kNoValue : found->second;
}

TensorView Executor::view(std::string_view value_name) const {
  ValueId id = find(value_name);
  if (id != kNoValue) return view(id);
  fail(ErrorCode::kUsage, "the program has no value '{}'", printable(value_name));
}

bool Executor::has(std::string_view value_name) const {
  ValueId id = find(value_name);
  return id != kNoValue && program_.placements[static_cast<std::size_t>(id)].buffer >= 0;
}

void Executor::write(std::string_view value_name, const Tensor& elements) {
  TensorView to = view(value_name);
  if (to.type != elements.type()) {
    fail(ErrorCode::kBadInput, "'{}' must be {}, is {}", printable(value_name), type_text(to.type),
         type_text(elements.type()));
  }
  if (elements.bytes() > 0) std::memcpy(to.data, elements.data(), elements.bytes());
}

Tensor Executor::read(std::string_view value_name) const {
  TensorView from = view(value_name);
  Tensor tensor(from.type);
  if (tensor.bytes() > 0) std::memcpy(tensor.data(), from.data, tensor.bytes());
  return tensor;
}

void Executor::run_part(std::size_t i, int part) {
  const Instruction& instruction = program_.instructions[i];
  const auto p = static_cast<std::size_t>(part);
  const Call& call = calls_[i].parts[p];
  at_node(program_.graph.node(instruction.node), [&] {
    run_kernel(*instruction.kernel, {.params = instruction.params,
                                     .inputs = call.inputs,
                                     .outputs = call.outputs,
                                     .workspace = call.workspace,
                                     .state = instruction.parts.prepared[p].state.get(),
                                     .threads = 1});
  });
}

// A share of the elements of each result that the parts of these instructions made summands of.
void Executor::add_summands(std::size_t begin, std::size_t end, int part) {
  for (std::size_t i = begin; i < end; ++i) {
    const InParts& in_parts = program_.instructions[i].parts;
    for (std::size_t k = 0; k < in_parts.outputs.size(); ++k) {
      if (in_parts.outputs[k] != PartOf::kSummand) continue;
      const std::vector<Call>& calls = calls_[i].parts;
      const std::int64_t elements = calls[0].outputs[k].elements();
      const std::int64_t from = elements * part / program_.threads;
      const std::int64_t to = elements * (part + 1) / program_.threads;
      auto* sum = calls[0].outputs[k].as<float>();
      for (std::size_t p = 1; p < calls.size(); ++p) {
        const auto* summand = calls[p].outputs[k].as<const float>();
        for (std::int64_t e = from; e < to; ++e) sum[e] += summand[e];
      }
    }
  }
}

void Executor::run_instruction(std::size_t i) {
  const Instruction& instruction = program_.instructions[i];
  if (!calls_[i].parts.empty()) {
    for (int p = 0; p < program_.threads; ++p) run_part(i, p);
    for (int p = 0; p < program_.threads; ++p) add_summands(i, i + 1, p);
    return;
  }
  const Call& call = calls_[i].whole;
  at_node(program_.graph.node(instruction.node), [&] {
    run_kernel(*instruction.kernel, {.params = instruction.params,
                                     .inputs = call.inputs,
                                     .outputs = call.outputs,
                                     .workspace = call.workspace,
                                     .state = instruction.prepared.state.get(),
                                     .threads = program_.threads});
  });
}

void Executor::run_chain(const Chain& chain) {
  struct Context {
    Executor& self;
    const Chain& chain;
  } context{*this, chain};
  program_.fork(program_.threads, &context, [](void* given, int part) {
    const auto& [self, run] = *static_cast<const Context*>(given);
    Observer* observer = part == 0 ? self.observer_ : nullptr;
    for (std::size_t i = run.begin; i < run.end; ++i) {
      if (observer != nullptr) observer->before(i);
      self.run_part(i, part);
      if (observer != nullptr) observer->after(i);
    }
  });
  program_.fork(program_.threads, &context, [](void* given, int part) {
    const auto& [self, run] = *static_cast<const Context*>(given);
    self.add_summands(run.begin, run.end, part);
  });
}

void Executor::run(std::size_t begin, std::size_t end) {
  const bool alone = observer_ != nullptr && observer_->alone();
  auto chain = std::ranges::lower_bound(program_.chains, begin, {}, &Chain::begin);
  for (std::size_t i = begin; i < end; ++i) {
    used_bytes_ = std::max(used_bytes_, calls_[i].end_bytes);
    used_host_bytes_ = std::max(used_host_bytes_, calls_[i].host_end_bytes);
    if (!alone && chain != program_.chains.end() && chain->begin == i && chain->end <= end) {
      run_chain(*chain);
      for (; i + 1 < chain->end; ++i) {
        used_bytes_ = std::max(used_bytes_, calls_[i + 1].end_bytes);
      }
      ++chain;
      continue;
    }
    if (observer_ != nullptr) observer_->before(i);
    run_instruction(i);
    if (observer_ != nullptr) observer_->after(i);
  }
}

void Executor::copy_states(Phase first, Phase last) {
  for (const StateCopy& copy : program_.copies) {
    if (copy.phase < first || copy.phase > last) continue;
    TensorView from = views_[static_cast<std::size_t>(copy.from)];
    TensorView to = views_[static_cast<std::size_t>(copy.to)];
    if (from.type.bytes() > 0) std::memcpy(to.data, from.data, from.type.bytes());
  }
}

void Executor::run_micro_step() {
  run(0, program_.update_begin);
  copy_states(Phase::kForward, Phase::kBackward);
}

void Executor::run_update() {
  run(program_.update_begin, program_.instructions.size());
  copy_states(Phase::kUpdate, Phase::kUpdate);
}

// What a step starts from: inputs, parameters and states, without those states that forward and
// backward themselves overwrite (running statistics, sums of gradients).
std::vector<ValueId> Executor::given_values() const {
  std::vector<ValueId> given;
  for (ValueId id : program_.graph.live_values()) {
    const ValueKind kind = program_.graph.value(id).kind;
    if (kind == ValueKind::kNode || kind == ValueKind::kConstant) continue;
    bool overwritten = std::ranges::any_of(program_.graph.updates, [&](const Update& u) {
      NodeId producer = program_.graph.value(u.value).producer;
      return u.state == id && producer != kNoNode &&
             program_.graph.node(producer).phase != Phase::kUpdate;
    });
    if (!overwritten && views_[static_cast<std::size_t>(id)].data != nullptr) given.push_back(id);
  }
  return given;
}

std::optional<BadTensor> Executor::find_bad_tensor() {
  for (ValueId id : given_values()) {
    const Value& value = program_.graph.value(id);
    const TensorView& view = views_[static_cast<std::size_t>(id)];
    BadTensor bad = inspect(view);
    bad.value = value.name;
    bad.op = name_of(value.kind);
    if (bad.nan + bad.infinite > 0) return bad;
  }
  std::optional<BadTensor> first_infinite;
  for (std::size_t i = 0; i < program_.update_begin; ++i) {
    run(i, i + 1);
    const Node& node = program_.graph.node(program_.instructions[i].node);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      BadTensor bad = inspect(calls_[i].whole.outputs[k]);
      if (bad.nan == 0 && bad.infinite == 0) continue;
      bad.value = program_.graph.value(node.outputs[k]).name;
      bad.node = node.name;
      bad.op = node.op->name;
      if (bad.nan > 0) return bad;
      if (!first_infinite) first_infinite = bad;
    }
  }
  return first_infinite;
}

}  // namespace trainscope
