// A node of a model, while the importer writes it with the ops that have rows.
#include "engine/onnx/composites/composition.h"

#include "engine/core/text.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {

std::string Composition::label() const {
  return fmt::format("node '{}' ({} of opset {})", printable(node_.source), printable(node_.op),
                     node_.opset);
}

ValueId Composition::input(std::size_t i) const {
  require(has(i), "input {} is missing", i);
  return to_.scope.value(node_, i);
}

std::vector<ValueId> Composition::inputs() const {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    all.push_back(has(i) ? input(i) : kNoValue);
  }
  return all;
}

const Tensor* Composition::known_value(ValueId v) const {
  const Value& value = to_.graph.value(v);
  const bool changes = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
  return changes ? nullptr : value.data.get();
}

ValueId Composition::operator()(std::string_view op, std::vector<ValueId> inputs,
                                Attributes attributes) {
  return multi(op, std::move(inputs), 1, std::move(attributes)).front();
}

std::vector<ValueId> Composition::multi(std::string_view op, std::vector<ValueId> inputs,
                                        std::size_t outputs, Attributes attributes) {
  Builder::Spec spec;
  spec.op = &to_.builder.ops().get(op);
  spec.name = to_.scope.fresh(fmt::format("{}/{}", node_.name, op));
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  spec.provenance = to_.provenance;
  for (std::size_t i = 0; i < outputs; ++i) {
    spec.output_names.push_back(i == 0 ? spec.name
                                       : to_.scope.fresh(fmt::format("{}:{}", spec.name, i)));
    made_.insert(spec.output_names.back());
  }
  const NodeId id = to_.builder.add(std::move(spec));
  return to_.graph.node(id).outputs;
}

ValueId Composition::constant(Tensor tensor) {
  return to_.graph.find(to_.scope.constant(std::move(tensor), node_.name + "/constant"));
}

ValueId Composition::scalar(double value, DType dtype) {
  return constant(convert(Tensor::scalar(value), dtype));
}

ValueId Composition::cast(ValueId v, DType dtype) {
  if (type(v).dtype == dtype) return v;
  return (*this)("Cast", {v}, {{"to", onnx_number(dtype)}});
}

ValueId Composition::reshape(ValueId v, const Ints& dims) {
  if (shape(v) == Shape(dims)) return v;
  return (*this)("Reshape", {v, ints(dims)}, {{"allowzero", std::int64_t{1}}});
}

ValueId Composition::transpose(ValueId v, Ints permutation) {
  return (*this)("Transpose", {v}, {{"perm", std::move(permutation)}});
}

ValueId Composition::slice(ValueId v, int axis, std::int64_t begin, std::int64_t end) {
  if (begin == 0 && end == shape(v)[axis]) return v;
  return (*this)("Slice", {v, ints({begin}), ints({end}), ints({axis})});
}

ValueId Composition::concat(std::vector<ValueId> values, std::int64_t axis) {
  if (values.size() == 1) return values.front();
  return (*this)("Concat", std::move(values), {{"axis", axis}});
}

ValueId Composition::scaled(ValueId v, double factor) {
  return factor == 1.0 ? v : multiply(v, scalar(factor, dtype(v)));
}

void Composition::result(std::size_t output, ValueId v) {
  if (!wants(output)) return;
  const bool own = made_.contains(to_.graph.value(v).name);
  if (!own) v = (*this)("Identity", {v});
  made_.erase(to_.graph.value(v).name);
  to_.graph.rename(v, node_.outputs[output]);
  done_[output] = true;
}

void Composition::finish() const {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    require_supported(done_[i] || !wants(i), "output {} is not supported", i);
  }
}

}  // namespace trainscope
