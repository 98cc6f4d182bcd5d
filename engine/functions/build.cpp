// Builds a body from its last node back to what is needed, then forward.
#include "engine/functions/build.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

bool is_constant(const FunctionNode& node) { return node.domain.empty() && node.op == "Constant"; }

class Body {
 public:
  Body(const FunctionText& function, const FunctionCall& call) : function_(function), call_(call) {
    for (std::size_t i = 0; i < function.inputs.size(); ++i) {
      values_[function.inputs[i]] = call.inputs[i];
    }
  }

  std::vector<ValueId> run() {
    find_needed();
    for (std::size_t i = 0; i < function_.nodes.size(); ++i) {
      if (needed_[i]) add(function_.nodes[i]);
    }
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < function_.outputs.size(); ++i) {
      const bool asked = call_.wanted[i] && function_.outputs[i] != kNothing;
      results.push_back(asked ? values_.at(function_.outputs[i]) : kNoValue);
    }
    return results;
  }

 private:
  void find_needed() {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < function_.outputs.size(); ++i) {
      if (call_.wanted[i]) names.insert(function_.outputs[i]);
    }
    needed_.assign(function_.nodes.size(), false);
    for (std::size_t i = function_.nodes.size(); i-- > 0;) {
      const FunctionNode& node = function_.nodes[i];
      for (const std::string& output : node.outputs) {
        needed_[i] = needed_[i] || names.contains(output);
      }
      if (needed_[i]) names.insert(node.inputs.begin(), node.inputs.end());
    }
  }

  void add(const FunctionNode& node) {
    const std::string where =
        fmt::format("{}:{}", function_.where.substr(0, function_.where.rfind(':')), node.line);
    try {
      if (is_constant(node)) {
        values_[node.outputs.front()] = constant(attributes_of(node));
        return;
      }
      add_op(node);
    } catch (Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      Error told(ErrorCode::kBadInput, fmt::format("{}: {}", where, error.message()));
      for (const std::string& context : error.context()) told.at(context);
      throw told;
    }
  }

  void add_op(const FunctionNode& node) {
    const OpDef* op = call_.b.ops().find(node.op, node.domain);
    CHECK_INVARIANT(op != nullptr);  // check_ops has seen to it
    std::vector<ValueId> inputs;
    for (const std::string& name : node.inputs) {
      const ValueId input = name.empty() ? kNoValue : values_.at(name);
      require(name.empty() || input != kNoValue, ErrorCode::kBadInput,
              "'{}' is read, which the node leaves out", printable(name));
      inputs.push_back(input);
    }
    std::vector<bool> made;
    for (const std::string& name : node.outputs) made.push_back(!name.empty());
    const std::vector<ValueId> outputs =
        call_.b.multi(*op, std::move(inputs), made, attributes_of(node));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (made[i]) values_[node.outputs[i]] = outputs[i];
    }
  }

  Attributes attributes_of(const FunctionNode& node) const {
    Attributes attributes;
    for (const FunctionAttribute& attribute : node.attributes) {
      if (attribute.value) {
        attributes.set(attribute.name, *attribute.value);
        continue;
      }
      const auto given = call_.attributes.map().find(attribute.reference);
      if (given != call_.attributes.map().end()) {
        attributes.set(attribute.name, given->second);
        continue;
      }
      for (const FunctionText::Declared& declared : function_.attributes) {
        if (declared.name != attribute.reference || !declared.absent) continue;
        attributes.set(attribute.name, *declared.absent);
      }
    }
    return attributes;
  }

  // Numbers written as float are of the type that the call computes in.
  ValueId constant(const Attributes& attributes) {
    Tensor tensor = constant_value(attributes);
    if (tensor.dtype() == DType::kF32 && call_.float_type != DType::kF32) {
      tensor = convert(tensor, call_.float_type);
    }
    return call_.b.constant(std::move(tensor));
  }

  // Of value, value_float, value_floats, value_int or value_ints, of which one is given.
  static Tensor constant_value(const Attributes& attributes) {
    require(attributes.map().size() == 1, ErrorCode::kBadInput,
            "a Constant has one attribute, value, value_float, value_floats, value_int or "
            "value_ints");
    const std::string& name = attributes.map().begin()->first;
    if (name == "value") {
      const SharedTensor tensor = attributes.tensor(name);
      require(tensor != nullptr, ErrorCode::kBadInput, "value is no tensor");
      return *tensor;
    }
    if (name == "value_int") return Tensor::scalar(attributes.integer(name, 0));
    if (name == "value_ints") return Tensor::ints(attributes.integers(name));
    if (name == "value_float") {
      return convert(Tensor::scalar(attributes.number(name, 0.0)), DType::kF32);
    }
    const Floats numbers = attributes.numbers(name);
    return convert(Tensor::of<double>(Shape{static_cast<std::int64_t>(numbers.size())},
                                      std::span<const double>(numbers)),
                   DType::kF32);
  }

  const FunctionText& function_;
  const FunctionCall& call_;
  std::map<std::string, ValueId, std::less<>> values_;
  std::vector<bool> needed_;  // by node
};

}  // namespace

std::vector<ValueId> build(const FunctionText& function, const FunctionCall& call) {
  CHECK_INVARIANT(call.inputs.size() == function.inputs.size());
  CHECK_INVARIANT(call.wanted.size() == function.outputs.size());
  return Body(function, call).run();
}

}  // namespace trainscope
