// to_graph: inputs, initializers and results; the nodes are in import_nodes.cpp.
#include "engine/onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/importer/import_plan.h"
#include "engine/onnx/importer/importer.h"
#include "engine/onnx/parameters.h"

namespace trainscope {
namespace {

constexpr std::size_t kListedNodes = 10;

std::string missing_line(const MissingOp& missing) {
  std::string name = missing.domain.empty() ? missing.op : missing.domain + "." + missing.op;
  std::string nodes;
  for (std::size_t i = 0; i < std::min(missing.nodes.size(), kListedNodes); ++i) {
    nodes += (i == 0 ? "" : ", ") + printable(missing.nodes[i]);
  }
  if (missing.nodes.size() > kListedNodes) {
    nodes += fmt::format(" and {} more", missing.nodes.size() - kListedNodes);
  }
  return fmt::format("\n  {} (opset {}, {} node{}): {}; {}", printable(name), missing.opset,
                     missing.nodes.size(), missing.nodes.size() == 1 ? "" : "s", missing.why,
                     nodes);
}

// What to do about them, each thing once.
std::string advice_for(const std::vector<MissingOp>& missing) {
  std::vector<std::string> advice;
  for (const MissingOp& each : missing) {
    const std::string text(advice_for_missing(each.domain, each.op));
    if (std::ranges::find(advice, text) == advice.end()) advice.push_back(text);
  }
  return join(advice, "; ");
}

// One report of everything that is missing.
void require_ops(const OnnxModel& model, const OpTable& ops) {
  std::vector<MissingOp> missing = missing_ops(model, ops);
  if (missing.empty()) return;
  std::string lines;
  for (const MissingOp& each : missing) lines += missing_line(each);
  try {
    fail_unsupported("the model needs {} op{} that cannot be imported:{}", missing.size(),
                     missing.size() == 1 ? "" : "s", lines);
  } catch (Error& error) {
    error.hint(advice_for(missing));
    throw;
  }
}

std::string declared_text(const ModelTensor& tensor) {
  if (!tensor.dims) return "of any rank";
  std::vector<std::string> dims;
  for (const ModelDim& dim : *tensor.dims) {
    dims.push_back(dim.size ? std::to_string(*dim.size) : printable(dim.symbol));
  }
  return fmt::format("[{}]", join(dims, ","));
}

ValueKind kind_of(InitializerRole role) {
  if (role == InitializerRole::kTrained) return ValueKind::kParameter;
  return role == InitializerRole::kState ? ValueKind::kState : ValueKind::kConstant;
}

bool agrees(const ModelTensor& declared, const Shape& shape) {
  if (!declared.dims) return true;
  if (static_cast<int>(declared.dims->size()) != shape.rank) return false;
  for (int i = 0; i < shape.rank; ++i) {
    const ModelDim& dim = (*declared.dims)[static_cast<std::size_t>(i)];
    if (dim.size && *dim.size != shape[i]) return false;
  }
  return true;
}

}  // namespace

Importer::Importer(const OnnxModel& model, const OpTable& ops, const ImportOptions& options)
    : source_(model),
      model_(model.impl()),
      proto_(model_.proto.graph()),
      ops_(ops),
      options_(options),
      builder_(graph_, ops),
      scope_(graph_, builder_, proto_),
      is_stage_(has_stage_metadata(model_.proto)) {
  if (is_stage_) stage_ = read_stage_metadata(model_.proto);
  builder_.set_evaluate(options.evaluate);
  graph_.name = is_stage_ ? stage_.graph_name : model_.proto.graph().name();
}

Graph Importer::run() {
  check_known_inputs();
  if (is_stage_) {
    add_stage_values();
  } else {
    add_inputs_and_initializers();
  }
  add_nodes();
  if (is_stage_) {
    add_stage_results();
  } else {
    add_results();
  }
  add_kept_values();
  check_outputs();
  if (is_stage_) stage_serials_.apply(graph_, stage_);
  return std::move(graph_);
}

DType Importer::dtype_of(DType dtype) const {
  return dtype == DType::kF32 ? options_.float_type : dtype;
}

ValueId Importer::find(std::string_view name, std::string_view what) const {
  ValueId id = graph_.find(name);
  if (id == kNoValue) scope_.check_not_refused(std::string(name));
  require(id != kNoValue, ErrorCode::kBadInput, "{} '{}' is not in the graph", what,
          printable(name));
  return id;
}

void Importer::add_input(const ModelTensor& input, const Shape& shape, ValueKind kind) {
  Value value;
  value.name = input.name;
  value.type = {.dtype = dtype_of(input.dtype), .shape = shape};
  value.kind = kind;
  graph_.add_value(std::move(value));
}

void Importer::add_known_input(const ModelTensor& input, const Shape& shape,
                               const Tensor& elements) {
  TensorType declared{.dtype = input.dtype, .shape = shape};
  require(elements.type() == declared, ErrorCode::kUsage, "input '{}' is {}, the given one is {}",
          printable(input.name), type_text(declared), type_text(elements.type()));
  Value value;
  value.name = input.name;
  value.type = {.dtype = dtype_of(input.dtype), .shape = shape};
  value.kind = ValueKind::kConstant;
  value.data = std::make_shared<const Tensor>(convert(elements, value.type.dtype));
  graph_.add_value(std::move(value));
}

void Importer::check_known_inputs() const {
  std::vector<std::string> names;
  for (const ModelTensor& input : model_.facts.inputs) names.push_back(input.name);
  for (const auto& [name, tensor] : options_.known_inputs) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorCode::kUsage, fmt::format("the model has no input '{}'", printable(name)))
        .hint(nearest_hint(name, names));
  }
  require(!is_stage_ || options_.known_inputs.empty(), ErrorCode::kUsage,
          "inputs of a recorded stage cannot become constants");
}

void Importer::add_initializer(int index, ValueKind kind) {
  const ModelInitializer& initializer = model_.facts.initializers[static_cast<std::size_t>(index)];
  const DType dtype = dtype_of(initializer.type.dtype);
  SharedTensor tensor;
  // Plans need no elements of what changes, only of what is known before the run.
  const bool by_shape = kind != ValueKind::kConstant && model_.is_unread(index);
  if (!by_shape) tensor = model_.tensor(index);
  if (tensor && dtype != tensor->dtype()) {
    tensor = std::make_shared<const Tensor>(convert(*tensor, dtype));
  }
  Value value;
  value.name = initializer.name;
  value.type = {.dtype = dtype, .shape = initializer.type.shape};
  value.kind = kind;
  value.data = std::move(tensor);
  graph_.add_value(std::move(value));
}

void Importer::add_inputs_and_initializers() {
  const std::vector<ModelTensor>& inputs = model_.facts.inputs;
  std::vector<Shape> shapes = bind_shapes(inputs, options_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto known = options_.known_inputs.find(inputs[i].name);
    if (known != options_.known_inputs.end()) {
      add_known_input(inputs[i], shapes[i], *known->second);
      continue;
    }
    add_input(inputs[i], shapes[i], ValueKind::kInput);
    graph_.inputs.push_back(graph_.find(inputs[i].name));
  }
  int index = 0;
  for (const InitializerChoice& choice : choose_parameters(source_, options_).initializers) {
    add_initializer(index++, kind_of(choice.role));
  }
}

// In the order of the exported graph's ids, so that it prints the same.
void Importer::add_stage_values() {
  const std::vector<ModelTensor>& inputs = model_.facts.inputs;
  std::vector<Shape> shapes = bind_shapes(inputs, options_);
  std::unordered_map<std::string_view, std::size_t> input_index;
  for (std::size_t i = 0; i < inputs.size(); ++i) input_index.emplace(inputs[i].name, i);
  for (const auto& [name, kind] : stage_.values) {
    require(graph_.find(name) == kNoValue, ErrorCode::kBadInput, "stage value '{}' is given twice",
            printable(name));
    auto input = input_index.find(name);
    auto initializer = model_.initializer_index.find(name);
    if (initializer != model_.initializer_index.end()) {
      require(kind != ValueKind::kInput, ErrorCode::kBadInput,
              "stage value '{}': an initializer cannot be an input", printable(name));
      add_initializer(initializer->second, kind);
      continue;
    }
    require(input != input_index.end(), ErrorCode::kBadInput,
            "stage value '{}' is not in the model", printable(name));
    require(kind != ValueKind::kConstant, ErrorCode::kBadInput,
            "stage value '{}': a constant needs an initializer", printable(name));
    add_input(inputs[input->second], shapes[input->second], kind);
  }
  require(stage_.values.size() == inputs.size() + model_.facts.initializers.size(),
          ErrorCode::kBadInput, "the stage lists {} values, the model has {}", stage_.values.size(),
          inputs.size() + model_.facts.initializers.size());
  require(stage_.value_serials.empty() || stage_.value_serials.size() == stage_.values.size(),
          ErrorCode::kBadInput, "the stage has {} values with {} serials", stage_.values.size(),
          stage_.value_serials.size());
  for (std::size_t i = 0; i < stage_.value_serials.size(); ++i) {
    stage_serials_.add(graph_.find(stage_.values[i].first), stage_.value_serials[i]);
  }
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : stage_.inputs) {
    ValueId id = find(name, "stage input");
    bool fresh = seen.insert(name).second;
    require(fresh && graph_.value(id).kind == ValueKind::kInput, ErrorCode::kBadInput,
            "stage input '{}' is not an input, or given twice", printable(name));
    graph_.inputs.push_back(id);
  }
}

void Importer::add_results() {
  for (const ModelTensor& output : model_.facts.outputs) {
    graph_.outputs.push_back(find(output.name, "output"));
  }
}

void Importer::add_kept_values() {
  for (const std::string& name : options_.keep_values) {
    ValueId id = graph_.find(name);
    if (id == kNoValue) {
      std::vector<std::string> names;
      for (ValueId v : graph_.live_values()) names.push_back(graph_.value(v).name);
      throw Error(ErrorCode::kUsage, fmt::format("the model has no value '{}'", printable(name)))
          .hint(nearest_hint(name, names));
    }
    if (std::ranges::find(graph_.outputs, id) == graph_.outputs.end()) graph_.outputs.push_back(id);
  }
}

void Importer::add_stage_results() {
  for (const std::string& name : stage_.outputs) {
    graph_.outputs.push_back(find(name, "stage output"));
  }
  for (const auto& [state, value] : stage_.updates) {
    add_update(find(state, "updated value"), find(value, "new value"));
  }
  for (const auto& [of, gradient] : stage_.gradients) {
    GradientOf pair{.of = find(of, "value"), .gradient = find(gradient, "gradient")};
    require(graph_.value(pair.of).type == graph_.value(pair.gradient).type, ErrorCode::kBadInput,
            "gradient '{}' has another type than '{}'", printable(gradient), printable(of));
    graph_.gradients.push_back(pair);
  }
  if (!stage_.loss.empty()) graph_.loss = find(stage_.loss, "loss");
}

void Importer::add_update(ValueId state, ValueId value) {
  const Value& s = graph_.value(state);
  bool changes = s.kind == ValueKind::kParameter || s.kind == ValueKind::kState;
  require(changes, ErrorCode::kBadInput, "'{}' is updated, but is neither parameter nor state",
          printable(s.name));
  require(s.type == graph_.value(value).type, ErrorCode::kBadInput,
          "'{}' is {}, its new value '{}' is {}", printable(s.name), type_text(s.type),
          printable(graph_.value(value).name), type_text(graph_.value(value).type));
  require(updated_.insert(s.name).second, ErrorCode::kBadInput, "'{}' is updated twice",
          printable(s.name));
  graph_.updates.push_back({.state = state, .value = value});
}

// What the file declares must be what the nodes give.
void Importer::check_outputs() const {
  for (const ModelTensor& output : model_.facts.outputs) {
    const TensorType& type = graph_.value(find(output.name, "output")).type;
    require(type.dtype == dtype_of(output.dtype), ErrorCode::kBadInput,
            "output '{}' is declared as {}, but the nodes give {}", printable(output.name),
            name_of(output.dtype), type_text(type));
    require(agrees(output, type.shape), ErrorCode::kBadInput,
            "output '{}' is declared with shape {}, but the nodes give {}", printable(output.name),
            declared_text(output), type_text(type));
  }
}

Graph to_graph(const OnnxModel& model, const OpTable& ops, const ImportOptions& options) {
  try {
    require_ops(model, ops);
    return Importer(model, ops, options).run();
  } catch (Error& error) {
    error.at(model.path().empty() ? "the model" : printable(model.path().string()));
    throw;
  }
}

}  // namespace trainscope
