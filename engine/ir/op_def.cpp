// Op rows by name, and what a node offers to its row's rules.
#include "engine/ir/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"

namespace trainscope {

int normalized_axis(std::int64_t axis, int rank) {
  require(axis >= -rank && axis < rank, ErrorCode::kBadInput,
          "axis {} is outside [-{}, {}) of a rank-{} tensor", axis, rank, rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Ints OpArgs::constant_ints(int i) const {
  require(has(i), ErrorCode::kBadInput, "input {} is missing", i);
  // Floats are trained, so that they are never known: the type is the news.
  require(type(i).dtype == DType::kI64 || type(i).dtype == DType::kI32, ErrorCode::kBadInput,
          "input {} must be int64 or int32, is {}", i, type_text(type(i)));
  const Tensor* tensor = constants[static_cast<std::size_t>(i)];
  require_supported(
      tensor != nullptr,
      "input {} depends on the data of the run; it must be known when the graph is built", i);
  return as_ints(*tensor);
}

double OpArgs::constant_number(int i, double absent) const {
  if (!has(i)) return absent;
  const Tensor* tensor = constants[static_cast<std::size_t>(i)];
  require_supported(
      tensor != nullptr,
      "input {} depends on the data of the run; it must be known when the graph is built", i);
  require(tensor->elements() == 1, ErrorCode::kBadInput, "input {} must hold one element, is {}", i,
          type_text(tensor->type()));
  return convert(*tensor, DType::kF64).values<double>()[0];
}

int OpArgs::axis(std::string_view name, std::int64_t absent, int rank_of_tensor) const {
  return normalized_axis(attributes.integer(name, absent), rank_of_tensor);
}

int Trips::carried_to(int output) const {
  const auto found = std::ranges::find(carried, output, &Carried::from);
  return found == carried.end() ? -1 : found->to;
}

bool Trips::is_sliced(int input) const { return std::ranges::find(sliced, input) != sliced.end(); }

bool Trips::is_stacked(int output) const {
  return std::ranges::find(stacked, output) != stacked.end();
}

const TensorType& GradArgs::type(ValueId v) const { return b.type(v); }

void OpTable::add(std::vector<OpDef> rows) {
  for (OpDef& row : rows) {
    std::pair<std::string, std::string> key{row.domain, row.name};
    bool fresh = rows_.emplace(std::move(key), std::move(row)).second;
    CHECK_INVARIANT(fresh);
  }
}

const OpDef* OpTable::find(std::string_view name, std::string_view domain) const {
  auto found = rows_.find(std::pair<std::string, std::string>(domain, name));
  if (found != rows_.end()) return &found->second;
  found = std::ranges::find_if(rows_, [&](const auto& each) {
    const OpDef& row = each.second;
    return !row.formerly.empty() && row.formerly == name && row.domain == domain;
  });
  return found == rows_.end() ? nullptr : &found->second;
}

const OpDef& OpTable::get(std::string_view name) const {
  const OpDef* row = find(name, kOnnxDomain);
  if (row == nullptr) row = find(name, kTrainscopeDomain);
  if (row == nullptr) {  // of a plugin
    const auto found =
        std::ranges::find_if(rows_, [name](const auto& each) { return each.second.name == name; });
    row = found == rows_.end() ? nullptr : &found->second;
  }
  if (row == nullptr) fmt::print(stderr, "op without a row: {}\n", name);
  CHECK_INVARIANT(row != nullptr);
  return *row;
}

std::vector<const OpDef*> OpTable::rows() const {
  std::vector<const OpDef*> rows;
  for (const auto& [key, row] : rows_) rows.push_back(&row);
  return rows;
}

DType kernel_dtype(std::span<const TensorType> inputs, std::span<const TensorType> outputs) {
  for (const std::span<const TensorType>& types : {outputs, inputs}) {
    const auto stored = std::ranges::find_if(
        types, [](const TensorType& type) { return is_stored_only(type.dtype); });
    if (stored != types.end()) return stored->dtype;
  }
  for (const TensorType& type : outputs) {
    if (is_float(type.dtype)) return type.dtype;
  }
  for (const TensorType& type : inputs) {
    if (is_float(type.dtype)) return type.dtype;
  }
  return inputs.empty() ? outputs.front().dtype : inputs.front().dtype;
}

Cost cost_of(const OpDef& op, const OpArgs& args) {
  if (op.cost) return op.cost(args);
  Cost cost;
  if (op.is_view) return cost;
  for (int i = 0; i < args.input_count(); ++i) {
    if (!args.has(i)) continue;
    add_saturating(cost.bytes_read, static_cast<std::int64_t>(args.type(i).bytes()));
  }
  for (const TensorType& type : args.outputs) {
    add_saturating(cost.bytes_written, static_cast<std::int64_t>(type.bytes()));
  }
  return cost;
}

NodeArgs::NodeArgs(const Graph& graph, const Node& node)
    : present_(std::make_unique<bool[]>(node.inputs.size())),
      args_{.attributes = node.attributes,
            .inputs = {},
            .constants = {},
            .present = {},
            .outputs = {},
            .output_count = static_cast<int>(node.outputs.size())} {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId input = node.inputs[i];
    present_[i] = input != kNoValue;
    inputs_.push_back(present_[i] ? graph.value(input).type : TensorType{});
    bool known = present_[i] && graph.value(input).kind != ValueKind::kParameter &&
                 graph.value(input).kind != ValueKind::kState;
    constants_.push_back(known ? graph.value(input).data.get() : nullptr);
  }
  for (ValueId output : node.outputs) {
    outputs_.push_back(output == kNoValue ? TensorType{} : graph.value(output).type);
  }
  args_.inputs = inputs_;
  args_.constants = constants_;
  args_.present = {present_.get(), node.inputs.size()};
  args_.outputs = outputs_;
}

}  // namespace trainscope
