// Before a call what it would read, behind it what it has made.
#include "engine/bisect/program/program_check.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "engine/bisect/call_judge.h"
#include "engine/bisect/defined_step.h"
#include "engine/bisect/node_alone.h"
#include "engine/bisect/program/call_values.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/exec/executor.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// Nodes and values of one graph by their serials.
template <typename Id>
class BySerial {
 public:
  void add(Serial serial, Id id) { ids_.emplace(static_cast<std::int32_t>(serial), id); }
  // Null: there is none.
  const Id* find(Serial serial) const {
    const auto found = ids_.find(static_cast<std::int32_t>(serial));
    return found == ids_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::int32_t, Id> ids_;
};

class ProgramChecker {
 public:
  ProgramChecker(std::shared_ptr<const Program> program, const Graph& definition,
                 const std::map<std::string, Tensor>& inputs)
      : executor_(std::move(program)),
        program_(executor_.program()),
        definition_(definition),
        reference_(evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference})),
        values_(executor_, inputs, reference_),
        is_done_(program_.graph.node_capacity(), false) {
    for (const NodeId id : definition.order()) nodes_.add(definition.node(id).serial, id);
    for (const ValueId id : program_.graph.live_values()) {
      ids_.add(program_.graph.value(id).serial, id);
    }
  }

  ProgramCheck run() {
    for (std::size_t i = 0; i < program_.calls.size(); ++i) {
      const auto id = CallId(static_cast<std::int32_t>(i));
      if (id == program_.update_begin) values_.begin_update();
      values_.make_before(id);
      ++result_.calls;
      // A kernel may rely on indices that it reads.
      if (!check_reads(id)) return std::move(result_);
      executor_.run_until(CallId(static_cast<std::int32_t>(i + 1)));
      values_.note_outputs(id);
      check_results(id);
      if (!result_.faults.empty()) return std::move(result_);
    }
    check_states();
    return std::move(result_);
  }

 private:
  bool is_done(NodeId id) const { return is_done_[static_cast<std::size_t>(id)]; }
  void set_done(NodeId id) { is_done_[static_cast<std::size_t>(id)] = true; }

  const Node* definition_of(const Node& node) const {
    const Serial first = node.provenance.rematerialized_of;
    const NodeId* id = nodes_.find(first == kNoSerial ? node.serial : first);
    return id == nullptr ? nullptr : &definition_.node(*id);
  }

  void add_fault(CallFaultKind kind, CallId id, ValueId value, const JudgedResult& numbers) {
    CallFault fault{.kind = kind,
                    .call = id,
                    .value = program_.graph.value(value).name,
                    .error = numbers.error,
                    .limit = numbers.limit};
    const Call& call = program_.call(id);
    fault.tile = call.tile;
    fault.phase = call.phase;
    if (call.kernel != nullptr) fault.kernel = std::string(call.kernel->name);
    if (call.node != kNoNode) {
      const Node& node = program_.graph.node(call.node);
      const Node* defined = definition_of(node);
      fault.op = std::string(node.op->name);
      fault.node = node.name;
      fault.definition = defined == nullptr ? node.name : defined->name;
      fault.source = model_node(program_.graph, node).name;
    }
    result_.faults.push_back(std::move(fault));
  }

  // Partials are of the call's own section, and are judged by their sum.
  bool check_reads(CallId id) {
    const Call& call = program_.call(id);
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      const Operand& input = call.inputs[k];
      const bool is_whole = input.slice == TileSlice::kWhole;
      if (input.value == kNoValue || input.buffer == kNoBuffer) continue;
      if (!is_whole && input.slice != TileSlice::kExamples) continue;
      if (values_.is_unknown(input.value)) continue;
      ++result_.reads;
      if (reads_what_was_given(id, k)) continue;
      add_fault(CallFaultKind::kReads, id, input.value, {});
      return false;
    }
    return true;
  }

  bool reads_what_was_given(CallId id, std::size_t k) {
    const Call& call = program_.call(id);
    const Operand& input = call.inputs[k];
    const Tensor* given = values_.find(input.value);
    const std::size_t bytes = input.type.bytes();
    const bool whole = input.slice == TileSlice::kWhole;
    const std::size_t at = whole ? 0 : static_cast<std::size_t>(call.tile) * bytes;
    if (given == nullptr || at + bytes > given->bytes()) return false;
    bytes_.resize(bytes);
    executor_.read_input(id, k, 0, bytes_);
    return bytes == 0 || std::memcmp(bytes_.data(), given->data() + at, bytes) == 0;
  }

  void check_results(CallId id) {
    const Call& call = program_.call(id);
    if (call.kind == CallKind::kTransfer || call.kind == CallKind::kStateCopy) {
      check_copy(id);
      return;
    }
    if (call.node == kNoNode || is_done(call.node)) return;
    const Node& node = program_.graph.node(call.node);
    const bool made = std::ranges::all_of(node.outputs, [this](ValueId output) {
      return output == kNoValue || !program_.keeps(output) || values_.find(output) != nullptr;
    });
    if (!made) return;
    set_done(call.node);
    judge(id, node);
  }

  void check_copy(CallId id) {
    const Call& call = program_.call(id);
    const Tensor* from = values_.find(call.inputs[0].value);
    const Tensor* to = values_.find(call.outputs[0].value);
    if (from == nullptr || to == nullptr) return;
    ++result_.results;
    if (same_bytes(*from, *to)) return;
    add_fault(CallFaultKind::kMakes, id, call.outputs[0].value, {.error = 1.0});
  }

  static bool same_bytes(const Tensor& a, const Tensor& b) {
    return a.bytes() == b.bytes() &&
           (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
  }

  // What the definition's node reads, as this program has made it; false: not all of it is known.
  bool find_inputs(const Node& defined, std::vector<const Tensor*>& inputs,
                   std::vector<Tensor>& views) const {
    views.reserve(defined.inputs.size());
    for (const ValueId input : defined.inputs) {
      inputs.push_back(nullptr);
      if (input == kNoValue) continue;
      const Value& value = definition_.value(input);
      const ValueId* here = ids_.find(value.serial);
      const Tensor* tensor = here == nullptr ? value.data.get() : values_.find(*here);
      if (tensor == nullptr || tensor->dtype() != value.type.dtype) return false;
      if (tensor->type() != value.type) {
        if (tensor->elements() != value.type.elements()) return false;
        tensor = &views.emplace_back(Tensor(*tensor).reshaped(value.type.shape));
      }
      inputs.back() = tensor;
    }
    return true;
  }

  void judge(CallId id, const Node& node) {
    const Node* defined = definition_of(node);
    std::vector<const Tensor*> inputs;
    std::vector<Tensor> views;
    if (defined == nullptr || !find_inputs(*defined, inputs, views)) {
      ++result_.unjudged;
      return;
    }
    const std::vector<Tensor> plain = by_reference(*defined, inputs);
    if (plain.empty()) {
      ++result_.unjudged;
      return;
    }
    const std::vector<Tensor> exact = exact_results(*defined, inputs, reference_);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      const Tensor* made = output == kNoValue ? nullptr : values_.find(output);
      if (made == nullptr || k >= plain.size() || made->elements() != plain[k].elements()) continue;
      const bool comparable = k < exact.size() && exact[k].elements() == plain[k].elements();
      const JudgedResult judged = judged_result(*made, plain[k], comparable ? &exact[k] : nullptr);
      note(node, judged);
      if (judged.is_fault()) add_fault(CallFaultKind::kMakes, id, output, judged);
    }
  }

  std::vector<Tensor> by_reference(const Node& node,
                                   const std::vector<const Tensor*>& inputs) const {
    try {
      return computed_alone(*node.op, node, inputs, reference_);
    } catch (const Error&) {
      return {};
    }
  }

  void note(const Node& node, const JudgedResult& judged) {
    ++result_.results;
    if (judged.limit <= 0.0 || judged.error / judged.limit <= result_.most) return;
    result_.most = judged.error / judged.limit;
    result_.most_of = node.name;
  }

  // Where the update of a state is in place, nothing may have written over it since.
  void check_states() {
    for (const Update& update : program_.graph.updates) {
      const Value& state = program_.graph.value(update.state);
      const Tensor* next = values_.find(update.value);
      if (next == nullptr || !executor_.has(state.name)) continue;
      ++result_.reads;
      if (same_bytes(executor_.read(state.name), *next)) continue;
      const CallId maker = maker_of(update.value);
      if (maker != kNoCall) add_fault(CallFaultKind::kKeeps, maker, update.state, {});
    }
  }

  // The last call that writes the value; kNoCall: none does.
  CallId maker_of(ValueId value) const {
    for (std::size_t i = program_.calls.size(); i-- > 0;) {
      const std::vector<Operand>& outputs = program_.calls[i].outputs;
      if (std::ranges::find(outputs, value, &Operand::value) != outputs.end()) {
        return CallId(static_cast<std::int32_t>(i));
      }
    }
    return kNoCall;
  }

  Executor executor_;
  const Program& program_;
  const Graph& definition_;
  const Evaluate reference_;
  CallValues values_;
  BySerial<NodeId> nodes_;     // of the definition
  BySerial<ValueId> ids_;      // of the program's graph
  std::vector<bool> is_done_;  // by NodeId: its results are judged
  std::vector<std::byte> bytes_;
  ProgramCheck result_;
};

}  // namespace

std::string_view name_of(CallFaultKind kind) {
  constexpr std::string_view kNames[] = {"reads", "makes", "keeps"};
  return kNames[static_cast<std::size_t>(kind)];
}

ProgramCheck check_program(std::shared_ptr<const Program> program, const Graph& definition,
                           const std::map<std::string, Tensor>& inputs) {
  return ProgramChecker(std::move(program), definition, inputs).run();
}

}  // namespace trainscope
