// One node at a time: choose a kernel, prepare, run; or decompose, or copy.
#include "engine/exec/reference.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference_body.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

constexpr TensorView kAbsent{.type = {}, .data = nullptr, .present = false};

// One node whose inputs are all known.
struct Call {
  const OpDef& op;
  const Attributes& attributes;
  const std::vector<const Tensor*>& inputs;  // null: left out
  const std::vector<TensorType>& outputs;
};

// What the op's rules see of a call: every input is known.
class CallArgs {
 public:
  explicit CallArgs(const Call& call)
      : present_(std::make_unique<bool[]>(call.inputs.size())),
        args_{.attributes = call.attributes,
              .inputs = {},
              .constants = call.inputs,
              .present = {present_.get(), call.inputs.size()},
              .outputs = call.outputs,
              .output_count = static_cast<int>(call.outputs.size())} {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      present_[i] = call.inputs[i] != nullptr;
      types_.push_back(present_[i] ? call.inputs[i]->type() : TensorType{});
    }
    args_.inputs = types_;
  }
  CallArgs(const CallArgs&) = delete;
  const OpArgs& operator*() const { return args_; }

 private:
  std::vector<TensorType> types_;
  std::unique_ptr<bool[]> present_;
  OpArgs args_;
};

// Fails when a call would cost more than there is left of the limit.
class Budget {
 public:
  explicit Budget(const WorkLimit& limit) : tensor_bytes_(limit.tensor_bytes), left_(limit.work) {}

  void check_tensor(std::int64_t bytes) const {
    require(bytes <= tensor_bytes_, ErrorCode::kOutOfMemory, "a tensor of {} bytes is too large",
            bytes);
  }

  void spend(const Call& call) {
    for (const TensorType& type : call.outputs) {
      check_tensor(static_cast<std::int64_t>(type.bytes()));
    }
    const CallArgs args(call);
    const Cost cost = cost_of(call.op, *args);
    constexpr std::int64_t kFree = 1024;  // shape arithmetic goes on when the rest is spent
    if (std::max({cost.flops, cost.bytes_read, cost.bytes_written}) <= kFree) return;
    for (std::int64_t part : {cost.flops, cost.bytes_read, cost.bytes_written}) {
      require(part <= left_, ErrorCode::kOutOfMemory, "{} is too much work", call.op.name);
      left_ -= part;
    }
  }

 private:
  std::int64_t tensor_bytes_;
  std::int64_t left_;
};

std::vector<Tensor> copy_view(const Call& call) {
  std::vector<Tensor> outputs;
  outputs.push_back(Tensor::unwritten(call.outputs[0]));
  const Tensor& input = *call.inputs[0];
  if (input.bytes() > 0) std::memcpy(outputs[0].data(), input.data(), input.bytes());
  return outputs;
}

class Interpreter {
 public:
  Interpreter(std::shared_ptr<const OpTable> ops, std::shared_ptr<const KernelTable> kernels,
              const ReferenceOptions& options)
      : ops_(std::move(ops)),
        kernels_(std::move(kernels)),
        options_(options),
        budget_(options.limit ? std::make_shared<Budget>(*options.limit) : nullptr) {
    start_threads(*cpu_device(), options.threads);
  }

  std::vector<Tensor> operator()(const Call& call) const {
    if (budget_ != nullptr) budget_->spend(call);
    if (call.op.is_view) return copy_view(call);
    if (call.op.body) return run_body(call);
    const Params params = call.op.params ? call.op.params(*CallArgs(call)) : Params(NoParams{});
    std::vector<TensorType> input_types;
    std::vector<TensorView> inputs;
    for (const Tensor* tensor : call.inputs) {
      inputs.push_back(tensor == nullptr ? kAbsent : tensor->view());
      if (tensor != nullptr) input_types.push_back(tensor->type());
    }
    std::vector<TensorView> outputs;
    for (const TensorType& type : call.outputs) outputs.push_back({.type = type});
    const PrepareArgs args{
        .params = params, .inputs = inputs, .outputs = outputs, .threads = options_.threads};
    const DType dtype = kernel_dtype(input_types, call.outputs);
    const Kernel* kernel =
        choose_kernel(
            *kernels_,
            {.op = call.op.name, .dtype = dtype, .args = args, .choice = options_.kernels})
            .kernel;
    if (kernel != nullptr) return run(*kernel, args);
    if (call.op.decompose) return run_decomposed(call);
    return {};
  }

 private:
  std::vector<Tensor> run(const Kernel& kernel, const PrepareArgs& args) const {
    const Prepared prepared = prepared_for(kernel, args);
    const auto workspace_bytes = static_cast<std::int64_t>(prepared.workspace_bytes);
    if (budget_ != nullptr) budget_->check_tensor(workspace_bytes);
    std::vector<Tensor> results;
    for (const TensorView& output : args.outputs) results.push_back(Tensor::unwritten(output.type));
    std::vector<TensorView> outputs;
    for (const Tensor& result : results) outputs.push_back(result.view());
    Tensor workspace = Tensor::unwritten({.dtype = DType::kBool, .shape = {workspace_bytes}});
    const DeviceStatus status = run_kernel(kernel, {.params = args.params,
                                                    .inputs = args.inputs,
                                                    .outputs = outputs,
                                                    .workspace = workspace.data(),
                                                    .state = prepared.state.get(),
                                                    .threads = options_.threads});
    const bool is_asked_ahead = budget_ != nullptr;  // then the run is to tell what fails
    if (!status.done() && is_asked_ahead) return {};
    check_done(kernel, status);
    return results;
  }

  std::vector<Tensor> run_body(const Call& call) const {
    return reference_trips(call.op.body(*CallArgs(call)), call.inputs, call.outputs, evaluate());
  }

  Evaluate evaluate() const {
    return [this](const OpDef& op, const Attributes& attributes,
                  const std::vector<const Tensor*>& inputs,
                  const std::vector<TensorType>& outputs) {
      return (*this)({.op = op, .attributes = attributes, .inputs = inputs, .outputs = outputs});
    };
  }

  // The node alone in a graph of constants, replaced by its decomposition. Decompositions lead to
  // simpler ops, so that the nesting is as deep as the op table is, whatever the model.
  std::vector<Tensor> run_decomposed(const Call& call) const {
    const Evaluate by_kernels = evaluate();
    Graph graph;
    Builder builder(graph, *ops_);
    builder.set_provenance({.sources = {}, .pass = "reference"});
    Builder::Spec spec;
    spec.op = &call.op;
    spec.name = std::string(call.op.name);
    spec.attributes = call.attributes;
    for (const Tensor* input : call.inputs) {
      spec.inputs.push_back(input == nullptr ? kNoValue : builder.constant(*input));
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      spec.output_names.push_back("output:" + std::to_string(i));
    }
    const NodeId id = builder.add(std::move(spec));
    builder.set_evaluate(&by_kernels);
    const Node node = graph.node(id);  // a copy: the graph's storage grows
    const std::vector<ValueId> values = call.op.decompose(builder, node);
    graph.erase_node(id);
    const ReferenceValues computed = reference_run(graph, {}, by_kernels);
    std::vector<Tensor> outputs;
    for (ValueId value : values) outputs.push_back(computed.at(value));
    return outputs;
  }

  std::shared_ptr<const OpTable> ops_;  // of all copies of this interpreter
  std::shared_ptr<const KernelTable> kernels_;
  ReferenceOptions options_;
  std::shared_ptr<Budget> budget_;  // null: no limit
};

// --- Whole graphs --------------------------------------------------------------------------------
SharedTensor initial(const Value& value, const std::map<std::string, Tensor>& inputs) {
  const auto given = inputs.find(value.name);
  if (given == inputs.end()) {
    require(value.kind != ValueKind::kInput, ErrorCode::kBadInput, "input '{}' ({}) is not given",
            printable(value.name), type_text(value.type));
    return value.data ? value.data : std::make_shared<const Tensor>(value.type);
  }
  require(given->second.type() == value.type, ErrorCode::kBadInput, "'{}' is {}, expected {}",
          printable(value.name), type_text(given->second.type()), type_text(value.type));
  return std::make_shared<const Tensor>(given->second);
}

}  // namespace

void compute_node(const Graph& graph, const Node& node, const Evaluate& evaluate,
                  std::vector<SharedTensor>& values) {
  std::vector<const Tensor*> inputs;
  for (ValueId v : node.inputs) {
    inputs.push_back(v == kNoValue ? nullptr : values[static_cast<std::size_t>(v)].get());
  }
  // Outputs that are left out are computed too, as the op's shape rule gives them.
  const NodeArgs args(graph, node);
  OpArgs without_outputs = *args;
  without_outputs.outputs = {};
  std::vector<TensorType> types = node.op->shape(without_outputs);
  types.resize(node.outputs.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    // Its readers count on the type that the graph has.
    const TensorType& type = graph.value(node.outputs[i]).type;
    require(types[i] == type, ErrorCode::kBadInput, "node '{}' makes {} of {}, not {}",
            printable(node.name), type_text(types[i]), node.op->name, type_text(type));
  }
  std::vector<Tensor> results =
      at_node(node, [&] { return evaluate(*node.op, node.attributes, inputs, types); });
  require_supported(!results.empty(), "no kernel for {} in node '{}' ({})", node.op->name,
                    printable(node.name),
                    inputs.empty() || inputs[0] == nullptr ? "" : type_text(inputs[0]->type()));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    values[static_cast<std::size_t>(node.outputs[i])] =
        std::make_shared<Tensor>(std::move(results[i]));
  }
}

Evaluate evaluator(const OpTable& ops, const KernelTable& kernels,
                   const ReferenceOptions& options) {
  return evaluator(std::make_shared<const OpTable>(ops),
                   std::make_shared<const KernelTable>(kernels), options);
}

Evaluate evaluator(std::shared_ptr<const OpTable> ops, std::shared_ptr<const KernelTable> kernels,
                   const ReferenceOptions& options) {
  return
      [interpreter = Interpreter(std::move(ops), std::move(kernels), options),
       limited = options.limit.has_value()](
          const OpDef& op, const Attributes& attributes, const std::vector<const Tensor*>& inputs,
          const std::vector<TensorType>& outputs) -> std::vector<Tensor> {
        try {
          return interpreter(
              {.op = op, .attributes = attributes, .inputs = inputs, .outputs = outputs});
        } catch (const Error& error) {
          const bool beyond = error.code() == ErrorCode::kOutOfMemory || error.unsupported();
          if (limited && beyond) return {};
          throw;
        }
      };
}

const Tensor& ReferenceValues::at(ValueId value) const {
  const SharedTensor& tensor = by_id[static_cast<std::size_t>(value)];
  CHECK_INVARIANT(tensor != nullptr);
  return *tensor;
}

const Tensor& ReferenceValues::at(std::string_view value_name) const {
  const ValueId value = graph.find(value_name);
  require(value != kNoValue, ErrorCode::kUsage, "the graph has no value '{}'",
          printable(value_name));
  return at(value);
}

std::vector<SharedTensor> given_values(const Graph& graph,
                                       const std::map<std::string, Tensor>& inputs) {
  std::vector<SharedTensor> by_id(graph.value_capacity());
  for (ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kNode) continue;
    by_id[static_cast<std::size_t>(id)] = initial(value, inputs);
  }
  return by_id;
}

namespace {

// A view of a node's value that nobody else reads is that value under another shape. Returns
// whether the node was one.
bool move_view(const Graph& graph, const Node& node, const std::vector<std::size_t>& readers,
               std::vector<SharedTensor>& values) {
  if (!node.op->is_view || node.outputs[0] == kNoValue) return false;
  const ValueId input = node.inputs[0];
  SharedTensor& tensor = values[static_cast<std::size_t>(input)];
  const bool is_last = readers[static_cast<std::size_t>(input)] == 1 && tensor.use_count() == 1;
  if (!is_last || graph.value(input).kind != ValueKind::kNode) return false;
  const TensorType& type = graph.value(node.outputs[0]).type;
  if (type.dtype != tensor->dtype() || type.elements() != tensor->elements()) return false;
  // compute_node() makes what it points to, and it is not const.
  Tensor moved = std::move(const_cast<Tensor&>(*tensor)).reshaped(type.shape);
  values[static_cast<std::size_t>(node.outputs[0])] = std::make_shared<Tensor>(std::move(moved));
  return true;
}

}  // namespace

void reference_run(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                   const Evaluate& evaluate, const SeeValue& see) {
  std::vector<SharedTensor> by_id = given_values(graph, inputs);
  std::vector<std::size_t> readers(graph.value_capacity());
  for (ValueId id : graph.live_values()) {
    readers[static_cast<std::size_t>(id)] = graph.value(id).uses.size();
  }
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!move_view(graph, node, readers, by_id)) compute_node(graph, node, evaluate, by_id);
    for (ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      SharedTensor& tensor = by_id[static_cast<std::size_t>(output)];
      see(output, *tensor);
      if (readers[static_cast<std::size_t>(output)] == 0) tensor.reset();
    }
    for (ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      if (--readers[static_cast<std::size_t>(input)] == 0) {
        by_id[static_cast<std::size_t>(input)].reset();
      }
    }
  }
}

ReferenceValues reference_run(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                              const Evaluate& evaluate) {
  ReferenceValues values{.graph = graph, .by_id = given_values(graph, inputs)};
  for (NodeId id : graph.order()) compute_node(graph, graph.node(id), evaluate, values.by_id);
  return values;
}

}  // namespace trainscope
