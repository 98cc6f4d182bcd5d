// From graph inputs to the fields that a dataset must have.
#include "cli/data/data_fields.h"

#include <algorithm>
#include <utility>

#include "cli/data/data_folder.h"
#include "datasets/spec.h"
#include "datasets/tensor_archive.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Ops that hand integers on unchanged.
bool passes_on(const Node& node) { return node.op->is_view || node.op->keeps_integers; }

// The smallest table that the integers of `input` index, 0 when they index none.
std::int64_t index_bound(const Graph& graph, ValueId input) {
  std::int64_t bound = 0;
  std::vector<ValueId> open = {input};
  std::vector<bool> seen(graph.value_capacity(), false);
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    for (const Use& use : graph.value(value).uses) {
      const Node& node = graph.node(use.node);
      if (use.input == node.op->index_input) {
        const NodeArgs args(graph, node);
        const std::int64_t rows =
            args->shape(0)[args->axis("axis", node.op->axis.value_or(0), args->rank(0))];
        bound = bound == 0 ? rows : std::min(bound, rows);
      }
      if (use.input != 0 || !passes_on(node) || node.outputs.front() == kNoValue) continue;
      const auto next = static_cast<std::size_t>(node.outputs.front());
      if (!seen[next]) open.push_back(node.outputs.front());
      seen[next] = true;
    }
  }
  return bound;
}

WantedField field_of(const Value& value, int batch_axis) {
  WantedField field{.name = value.name,
                    .dtype = value.type.dtype,
                    .dims = std::nullopt,
                    .bound = 0,
                    .ignored = std::nullopt,
                    .batch_axis = batch_axis};
  field.dims.emplace();
  const Shape& shape = value.type.shape;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (axis != batch_axis) field.dims->push_back(shape[axis]);
  }
  return field;
}

int batch_axis_of(const Sizes& sizes, const std::string& name) {
  const auto found = sizes.batch_axes.find(name);
  return found == sizes.batch_axes.end() ? 0 : found->second;
}

// Labels lie as the output that they are compared with, but for its classes.
int labels_axis(const Graph& imported, const LossOptions& loss, const Sizes& sizes) {
  if (sizes.batch_axes.contains(kLabelsOfLoss)) return sizes.batch_axes.at(kLabelsOfLoss);
  if (loss.kind == LossKind::kCtc) return 0;
  const int axis = batch_axis_of(sizes, loss.output);
  const ValueId output = imported.find(loss.output);
  if (!is_by_class(loss.kind) || axis == 0 || output == kNoValue) return axis;
  const int rank = imported.value(output).type.shape.rank;
  const std::int64_t classes = loss.class_axis < 0 ? loss.class_axis + rank : loss.class_axis;
  return classes < axis ? axis - 1 : axis;
}

// Classes that labels may name; 0 for losses without classes.
std::int64_t class_count(const Graph& imported, const LossOptions& loss) {
  const ValueId output = imported.find(loss.output);
  if (!is_by_class(loss.kind) || output == kNoValue) return 0;
  const Shape& shape = imported.value(output).type.shape;
  const std::int64_t axis = loss.class_axis < 0 ? loss.class_axis + shape.rank : loss.class_axis;
  return axis < 0 || axis >= shape.rank ? 0 : shape[static_cast<int>(axis)];
}

// Whose fields are wanted.
struct CompiledStep {
  const Program& program;
  const Graph& imported;
  const Sizes& sizes;
};

// The field of this name that is there already: of the model, or of another term; null: none.
WantedField* listed_field(std::string_view name, DatasetOptions& options) {
  if (options.labels && options.labels->name == name) return &*options.labels;
  const auto found = std::ranges::find(options.inputs, name, &WantedField::name);
  return found == options.inputs.end() ? nullptr : &*found;
}

// Labels that several losses read name classes of each of them; so do those that are an input of
// the model.
void share_labels(const LossOptions& loss, std::int64_t classes, WantedField& field) {
  if (!is_by_class(loss.kind)) return;
  const bool differ = field.bound > 0 && field.ignored && *field.ignored != loss.ignore_index;
  require(!differ, ErrorCode::kUsage,
          "--loss: '{}' is read with ignore_index {} and with {}: labels that losses share are "
          "ignored by both or by none",
          printable(field.name), field.ignored.value_or(0), loss.ignore_index);
  if (field.bound == 0) field.ignored = loss.ignore_index;
  field.bound = field.bound == 0 ? classes : std::min(field.bound, classes);
}

// The input of this name that the program reads; kNoValue: nothing does, or the field is there.
ValueId unlisted_input(const CompiledStep& step, std::string_view name,
                       const DatasetOptions& options) {
  const bool is_listed =
      std::ranges::find(options.inputs, name, &WantedField::name) != options.inputs.end();
  const ValueId id = step.program.graph.find(name);
  const bool wanted = id != kNoValue && !is_listed && step.program.keeps(id) &&
                      (!options.labels || options.labels->name != name);
  return wanted ? id : kNoValue;
}

// What a term of the loss reads besides the model's own inputs. A model that computes its loss
// itself gets its labels as inputs; so does one whose labels are inputs of it. Of several kinds of
// labels the first ones are the dataset's.
void add_labels(const CompiledStep& step, const LossOptions& loss, DatasetOptions& options) {
  if (loss.kind == LossKind::kOutput) return;
  if (loss.kind == LossKind::kCtc) {
    for (std::string_view name : {kInputLengths, kLabelLengths}) {
      const ValueId lengths = unlisted_input(step, name, options);
      if (lengths == kNoValue) continue;
      options.inputs.push_back(field_of(step.program.graph.value(lengths), 0));
    }
  }
  if (WantedField* listed = listed_field(loss.labels, options)) {
    return share_labels(loss, class_count(step.imported, loss), *listed);
  }
  const ValueId labels = unlisted_input(step, loss.labels, options);
  if (labels == kNoValue) return;
  const int axis = labels_axis(step.imported, loss, step.sizes);
  const TensorType& type = step.program.graph.value(labels).type;
  require(axis == 0 || axis < type.shape.rank, ErrorCode::kUsage, "--batch-axis {}={}: they are {}",
          kLabelsOfLoss, axis, type_text(type));
  WantedField field = field_of(step.program.graph.value(labels), axis);
  field.bound = class_count(step.imported, loss);
  field.ignored = loss.ignore_index;
  if (options.labels) {
    options.inputs.push_back(std::move(field));
  } else {
    options.ignore_index = loss.ignore_index;
    options.labels = std::move(field);
  }
}

}  // namespace

DatasetOptions dataset_options(const Compiled& compiled, const OnnxModel& model,
                               const LossOptions& loss, const Sizes& sizes) {
  const Graph& imported = compiled.stages.front().graph;
  CHECK_INVARIANT(imported.value_capacity() > 0);  // KeepGraphs::kAll: labels and tables are in it
  const Program& program = compiled.program;
  DatasetOptions options;
  options.ignore_index = loss.ignore_index;
  options.sequence = sizes.sequence;
  options.data_folder = data_folder();
  const auto keeps_bytes = [&program](const std::string& name) {
    const ValueId id = program.graph.find(name);
    return id != kNoValue && program.keeps(id);
  };
  for (const ModelTensor& input : model.inputs()) {
    const ValueId id = imported.find(input.name);
    if (id == kNoValue || !keeps_bytes(input.name)) continue;  // nothing reads it
    WantedField field = field_of(imported.value(id), batch_axis_of(sizes, input.name));
    if (is_index_type(field.dtype)) field.bound = index_bound(imported, id);
    options.inputs.push_back(std::move(field));
  }
  for (const LossOptions* term : terms_of_loss(loss)) {
    add_labels({.program = program, .imported = imported, .sizes = sizes}, *term, options);
  }
  return options;
}

namespace {

void resolve_most_labels_of(const DataSpec& spec, LossOptions& loss) {
  if (loss.kind != LossKind::kCtc || loss.most_labels > 0 || spec.format != "tensors") return;
  const std::unique_ptr<TensorArchive> file = open_tensor_archive(spec.file());
  if (!file->contains(loss.labels)) return;
  const Shape shape = file->type(loss.labels).shape;
  if (shape.rank == 2) loss.most_labels = shape[1];
}

}  // namespace

void resolve_most_labels(const std::string& source, LossOptions& loss) {
  const DataSpec spec = parse_data_spec(source);
  resolve_most_labels_of(spec, loss);
  for (LossOptions& term : loss.further) resolve_most_labels_of(spec, term);
}

SizeRequest sizes_with_data(const OnnxModel& model, SizeRequest request,
                            const std::string& source) {
  const Sizes sizes = resolve_sizes(model, request);
  const std::vector<std::string> open = open_symbols(model, sizes);
  const DataSpec spec = parse_data_spec(source);
  if (open.empty() || spec.format != "tensors") return request;
  const std::unique_ptr<TensorArchive> file = open_tensor_archive(spec.file());
  for (const ModelTensor& input : model.inputs()) {
    if (!input.dims || !file->contains(input.name)) continue;
    const Shape shape = file->type(input.name).shape;
    if (static_cast<std::size_t>(shape.rank) != input.dims->size()) continue;
    const auto batch = static_cast<std::size_t>(batch_axis_of(sizes, input.name));
    for (std::size_t axis = 0; axis < input.dims->size(); ++axis) {
      if (axis == batch) continue;
      const std::string& symbol = (*input.dims)[axis].symbol;
      if (std::ranges::find(open, symbol) == open.end()) continue;
      request.shapes.emplace(symbol, Ints{shape[static_cast<int>(axis)]});
    }
  }
  return request;
}

Sizes resolve_sizes_with_data(const OnnxModel& model, SizeRequest request,
                              const std::string& source) {
  return resolve_sizes(model, sizes_with_data(model, std::move(request), source));
}

}  // namespace trainscope
