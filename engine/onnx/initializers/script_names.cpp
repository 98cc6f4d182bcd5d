// What the older exporter leaves of names: those of tensors, those of modules in nodes' names.
#include "engine/onnx/initializers/script_names.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/onnx/initializers/initializer_uses.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {
namespace {

bool is_made_by_exporter(const std::string& name) {
  const bool number = std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); });
  return number || is_name_of_constant(name) || name.find_first_of("/:") != std::string::npos;
}

// At most one axis has another size than 1.
bool is_vector(const Shape& shape) {
  return std::ranges::count_if(shape.span(), [](std::int64_t size) { return size != 1; }) <= 1;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// "encoder.ffn" of "encoder.ffn_1", which the exporter calls a layer at its second call.
std::string first_call(const std::string& module) {
  const std::size_t end = module.find_last_not_of("0123456789");
  const bool counted = end != std::string::npos && end + 1 < module.size() && module[end] == '_';
  return counted ? module.substr(0, end) : module;
}

// Whether the module that nodes are named by is another one than the tensor's, and not around it.
// Where a module calls a layer of another one, its path in nodes' names lacks a part: "fc" of
// "head.fc".
bool is_foreign(const std::string& name, const std::string& reader) {
  const std::string owner = module_of(name);
  const std::string module = first_call(reader);
  const bool inside = ("." + owner + ".").find("." + module + ".") != std::string::npos;
  return !module.empty() && !inside && last_part(owner) != last_part(module);
}

class ScriptNamer {
 public:
  explicit ScriptNamer(const OnnxModel::Impl& model);
  std::vector<TorchTensor> run();

 private:
  // An initializer at an input of a node, perhaps through a Transpose.
  struct Read {
    const pb::NodeProto* node = nullptr;
    int slot = 0;
    bool transposed = false;
  };

  bool add(const std::string& name, const std::string& initializer,
           TorchLayout layout = TorchLayout::kSame);
  TorchTensor unfolded(const ModelInitializer& folded) const;
  std::string weight_of_bias(const pb::NodeProto& matmul) const;
  void add_folded();
  void add_tied();
  std::string tied_name(const ModelInitializer& own, const Read& read) const;

  const OnnxModel::Impl& model_;
  std::unordered_map<std::string_view, std::vector<Read>> reads_;  // by initializer
  std::unordered_map<std::string_view, const pb::NodeProto*> consumers_;
  std::set<std::string> group_norms_;  // modules
  std::set<std::string> taken_;
  std::vector<TorchTensor> tensors_;
};

ScriptNamer::ScriptNamer(const OnnxModel::Impl& model) : model_(model) {
  std::unordered_map<std::string_view, std::string_view>
      transposed;  // its output, what it transposes
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    if (node.op_type() == "InstanceNormalization") group_norms_.insert(script_module(node.name()));
    if (node.op_type() == "Transpose" && model.initializer_index.contains(node.input(0))) {
      transposed.emplace(node.output(0), node.input(0));
      continue;
    }
    for (int slot = 0; slot < node.input_size(); ++slot) {
      const std::string& input = node.input(slot);
      consumers_.emplace(input, &node);
      const auto through = transposed.find(input);
      if (through != transposed.end()) {
        reads_[through->second].push_back({.node = &node, .slot = slot, .transposed = true});
      } else if (model.initializer_index.contains(input)) {
        reads_[input].push_back({.node = &node, .slot = slot});
      }
    }
  }
}

bool ScriptNamer::add(const std::string& name, const std::string& initializer, TorchLayout layout) {
  if (!taken_.insert(name).second) return false;
  tensors_.push_back({.name = name, .initializer = initializer, .layout = layout});
  return true;
}

std::vector<TorchTensor> ScriptNamer::run() {
  for (const ModelInitializer& each : model_.facts.initializers) {
    if (!is_made_by_exporter(each.name)) add(each.name, each.name);
  }
  add_folded();
  add_tied();
  return std::move(tensors_);
}

// A linear layer's bias has its name, which tells the weight's: "attn.in_proj_bias".
std::string ScriptNamer::weight_of_bias(const pb::NodeProto& matmul) const {
  constexpr std::string_view kBias = "bias";
  const auto consumer = consumers_.find(matmul.output(0));
  if (consumer == consumers_.end() || consumer->second->op_type() != "Add") return {};
  for (const std::string& input : consumer->second->input()) {
    const bool named = model_.initializer_index.contains(input) && !is_made_by_exporter(input);
    if (!named || !input.ends_with(kBias)) continue;
    return input.substr(0, input.size() - kBias.size()) + "weight";
  }
  return {};
}

// The tensor that the exporter folded: its name is "" where its reader does not tell it.
TorchTensor ScriptNamer::unfolded(const ModelInitializer& folded) const {
  TorchTensor tensor{.name = {}, .initializer = folded.name};
  const auto reads = reads_.find(folded.name);
  if (reads == reads_.end() || reads->second.size() != 1) return tensor;
  const Read& read = reads->second.front();
  const std::string module = script_module(read.node->name());
  const std::string& op = read.node->op_type();
  std::string_view leaf;
  if (op == "MatMul" && read.slot == 1 && folded.type.shape.rank == 2 && !read.transposed) {
    tensor.layout = TorchLayout::kTransposed;
    tensor.name = weight_of_bias(*read.node);
    if (!tensor.name.empty()) return tensor;
    leaf = "weight";
  } else if (op == "BatchNormalization" && read.slot >= 3) {
    leaf = read.slot == 3 ? "running_mean" : "running_var";
  } else if (is_vector(folded.type.shape) && read.slot == 1) {
    tensor.layout = TorchLayout::kVector;
    const bool group_norm = group_norms_.contains(module);
    if (op == "PRelu" || (op == "Mul" && group_norm)) leaf = "weight";
    if (op == "Add" && group_norm) leaf = "bias";
  }
  if (!leaf.empty() && !module.empty()) tensor.name = module + "." + std::string(leaf);
  return tensor;
}

// Of several that would have one name none is known.
void ScriptNamer::add_folded() {
  std::map<std::string, std::vector<TorchTensor>> found;
  for (const ModelInitializer& each : model_.facts.initializers) {
    if (!is_made_by_exporter(each.name) || !is_float(each.type.dtype)) continue;
    TorchTensor tensor = unfolded(each);
    if (!tensor.name.empty()) found[tensor.name].push_back(std::move(tensor));
  }
  for (const auto& [name, tensors] : found) {
    if (tensors.size() == 1) add(name, tensors.front().initializer, tensors.front().layout);
  }
}

// The name that a tensor of another module has in the one that reads it, "" where it has none: a
// layer whose weight was set to another one's, "head.weight" for "embedding.weight".
std::string ScriptNamer::tied_name(const ModelInitializer& own, const Read& read) const {
  const std::string module = script_module(read.node->name());
  if (!is_foreign(own.name, module)) return {};
  const std::string& op = read.node->op_type();
  const bool embedding =
      op == "Gather" && read.slot == 0 && !read.transposed && own.name.ends_with(".weight");
  const bool linear =
      (op == "Gemm" && read.slot == 1) || (op == "MatMul" && read.slot == 1 && read.transposed);
  if ((embedding || linear) && own.type.shape.rank == 2) return module + ".weight";
  const bool bias = ((op == "Gemm" && read.slot == 2) || op == "Add") && own.name.ends_with("bias");
  const bool layer = taken_.contains(module + ".weight") && own.type.shape.rank == 1;
  return bias && layer ? module + ".bias" : "";
}

// Weights before biases: a layer that has no weight of its own has no bias either.
void ScriptNamer::add_tied() {
  for (const int rank : {2, 1}) {
    for (const ModelInitializer& each : model_.facts.initializers) {
      const auto reads = reads_.find(each.name);
      if (each.type.shape.rank != rank || reads == reads_.end()) continue;
      if (is_made_by_exporter(each.name)) continue;
      for (const Read& read : reads->second) {
        const std::string name = tied_name(each, read);
        if (!name.empty()) add(name, each.name);
      }
    }
  }
}

}  // namespace

std::vector<TorchTensor> script_tensors(const OnnxModel::Impl& model) {
  return ScriptNamer(model).run();
}

}  // namespace trainscope
