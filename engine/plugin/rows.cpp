// Checks ops of plugins, and wraps their functions as rules.
#include "engine/plugin/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/functions/build.h"
#include "engine/functions/gradient_function.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"
#include "engine/plugin/calls.h"

namespace trainscope {
namespace {

constexpr int kMostOperands = 1024;
constexpr int kMostRows = 4096;

bool is_name(const char* text) {
  if (text == nullptr || *text == '\0' || std::isdigit(static_cast<unsigned char>(*text)) != 0) {
    return false;
  }
  return std::ranges::all_of(std::string_view(text), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

bool is_domain(const char* text) {
  const std::string_view domain = text == nullptr ? std::string_view() : text;
  const bool ours = domain == kTrainscopeDomain || domain.starts_with("ai.onnx");
  return !ours && !domain.empty() && std::ranges::all_of(domain, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// Of a step of an optimizer: nothing of it is computed twice.
bool is_step(const plugin::Plugin& of, std::string_view op) {
  for (std::int32_t i = 0; i < of.optimizer_count; ++i) {
    const std::optional<plugin::Optimizer> row = taken(of.optimizers[i]);
    if (row && text_or_empty(row->step) == op) return true;
  }
  return false;
}

void check_counts(const plugin::Op& op) {
  const bool fits =
      op.min_inputs >= 0 && op.min_inputs <= op.max_inputs && op.max_inputs <= kMostOperands &&
      op.max_outputs >= 1 && op.max_outputs <= kMostOperands && op.attribute_count >= 0 &&
      op.attribute_count <= kMostRows && op.example_count >= 0 && op.example_count <= kMostRows &&
      op.in_place_count >= 0 && op.in_place_count <= kMostRows;
  require(fits, ErrorCode::kBadInput,
          "op {}: {} to {} inputs, up to {} outputs, {} attributes, {} examples and {} pairs in "
          "place are out of bounds",
          op.name, op.min_inputs, op.max_inputs, op.max_outputs, op.attribute_count,
          op.example_count, op.in_place_count);
  for (std::int32_t i = 0; i < op.in_place_count; ++i) {
    const plugin::InPlace& pair = op.in_place[i];
    require(pair.output >= 0 && pair.output < op.max_outputs && pair.input >= 0 &&
                pair.input < op.max_inputs,
            ErrorCode::kBadInput, "op {}: there is no output {} or input {} to have one place",
            op.name, pair.output, pair.input);
  }
}

void check_op(const plugin::Op& op, const std::vector<const OpDef*>& rows) {
  require(is_name(op.name), ErrorCode::kBadInput, "an op is called '{}', which is no name",
          printable(text_or_empty(op.name)));
  require(is_domain(op.domain), ErrorCode::kBadInput,
          "op {}: '{}' is no domain of a plugin: one's own is wanted, com.example for example",
          op.name, printable(text_or_empty(op.domain)));
  const auto same = std::ranges::find(rows, std::string_view(op.name), &OpDef::name);
  if (same != rows.end()) {
    const std::string_view domain = (*same)->domain;
    throw Error(ErrorCode::kBadInput, fmt::format("op {}: there is an op of this name in {}",
                                                  op.name, domain.empty() ? "ai.onnx" : domain))
        .hint("give it another name: kernels are found by it, whatever the domain");
  }
  require(op.shape != nullptr, ErrorCode::kBadInput, "op {} has no shape rule", op.name);
  check_counts(op);
}

ShapeRule shape_rule(const plugin::Op& op) {
  return [rule = op.shape, most = op.max_outputs](const OpArgs& args) {
    NodeCall node(args);
    // A rule that says all types, also those that the node does not ask for, has room for them.
    const auto asked = static_cast<std::size_t>(args.output_count);
    std::vector<plugin::TensorType> types(std::max(asked, static_cast<std::size_t>(most)));
    rule(node.call(), types.data());
    node.check();
    types.resize(asked);
    std::vector<TensorType> result;
    for (const plugin::TensorType& type : types) {
      const std::optional<TensorType> own = engine_type(type);
      require(own.has_value(), ErrorCode::kBadInput,
              "the plugin's shape rule gives element type {} with {} dimensions, which is no type",
              type.dtype, type.rank);
      result.push_back({own->dtype, checked_shape(own->shape)});
    }
    return result;
  };
}

CostRule cost_rule(const plugin::Op& op) {
  return [flops = op.flops](const OpArgs& args) {
    NodeCall node(args);
    Cost cost;
    for (int i = 0; i < args.input_count(); ++i) {
      if (!args.has(i)) continue;
      add_saturating(cost.bytes_read, static_cast<std::int64_t>(args.type(i).bytes()));
    }
    for (const TensorType& type : args.outputs) {
      add_saturating(cost.bytes_written, static_cast<std::int64_t>(type.bytes()));
      if (flops == nullptr) add_saturating(cost.flops, type.elements());
    }
    if (flops != nullptr) cost.flops = std::max<std::int64_t>(flops(node.call()), 0);
    node.check();
    return cost;
  };
}

InPlaceRule in_place_rule(const plugin::Op& op) {
  if (op.in_place_count == 0) return nullptr;
  std::vector<InPlace> pairs;
  for (std::int32_t i = 0; i < op.in_place_count; ++i) {
    pairs.push_back({.output = op.in_place[i].output, .input = op.in_place[i].input});
  }
  return [pairs = std::move(pairs)](const OpArgs& args) {
    std::vector<InPlace> fitting;
    for (const InPlace& pair : pairs) {
      const auto output = static_cast<std::size_t>(pair.output);
      const bool there = output < args.outputs.size() && args.has(pair.input);
      if (there && args.type(pair.input) == args.outputs[output]) fitting.push_back(pair);
    }
    return fitting;
  };
}

OpTraits traits_of(const plugin::Op& op, bool is_step_op) {
  if (op.definition != nullptr) return kComposite;
  OpTraits traits = op.form == plugin::OpForm::kElementwise ? kOtherPointwise : kWholeValues;
  if (op.recompute == plugin::Recompute::kCostly) traits.rematerialize = Rematerialize::kHeavy;
  if (op.recompute == plugin::Recompute::kNever || is_step_op) {
    traits.rematerialize = Rematerialize::kOnce;
  }
  return traits;
}

OpClass class_of(const plugin::Op& op, bool is_step_op) {
  if (is_step_op) return OpClass::kOptimizer;
  return op.form == plugin::OpForm::kElementwise ? OpClass::kPointwise : OpClass::kOther;
}

OpDef row_of_op(const plugin::Op& op, bool is_step_op) {
  OpDef row{.name = op.name,
            .doc = text_or_empty(op.doc),
            .domain = op.domain,
            .min_inputs = op.min_inputs,
            .max_inputs = op.max_inputs,
            .max_outputs = op.max_outputs,
            .params = [](const OpArgs& args) -> Params {
              return PluginParams{std::make_shared<const PluginAttributes>(args.attributes)};
            },
            .shape = shape_rule(op),
            .cost = cost_rule(op),
            .in_place = in_place_rule(op),
            .op_class = class_of(op, is_step_op),
            .traits = traits_of(op, is_step_op),
            .tolerance_f32 = op.tolerance_f32};
  for (std::int32_t i = 0; i < op.attribute_count; ++i) {
    require(is_name(op.attributes[i].name), ErrorCode::kBadInput,
            "op {}: an attribute is called '{}', which is no name", op.name,
            printable(text_or_empty(op.attributes[i].name)));
    row.attributes.push_back(
        {.name = op.attributes[i].name, .doc = text_or_empty(op.attributes[i].doc)});
  }
  for (std::int32_t i = 0; i < op.example_count; ++i) {
    row.examples.push_back(text_or_empty(op.examples[i]));
  }
  return row;
}

// Their ops may be others of the plugin: the table has all of them.
void add_gradient(OpDef& row, const plugin::Op& op, const OpTable& ops) {
  GradientFunction gradient =
      parse_gradient(op.gradient, fmt::format("the gradient of {}", op.name), ops);
  require(gradient.op == op.name, ErrorCode::kBadInput,
          "op {}: its gradient is called {}, not {}_grad", op.name,
          printable(gradient.function.name), op.name);
  require(static_cast<int>(gradient.inputs) == op.max_inputs &&
              static_cast<int>(gradient.outputs) == op.max_outputs,
          ErrorCode::kBadInput,
          "op {}: its gradient is for {} inputs and {} outputs, it has {} and {}", op.name,
          gradient.inputs, gradient.outputs, op.max_inputs, op.max_outputs);
  row.gradient = gradient_rule(std::make_shared<const GradientFunction>(std::move(gradient)));
}

void check_results(const Builder& b, const Node& node, const std::vector<ValueId>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const TensorType& made = b.type(results[i]);
    const TensorType& said = b.type(node.outputs[i]);
    require(made == said, ErrorCode::kBadInput,
            "{} '{}': the plugin's definition makes {}, its shape rule says {}", node.op->name,
            printable(node.name), type_text(made), type_text(said));
  }
}

// Ops of the plugin that it uses are defined before it, so that it ends.
void check_order(const FunctionText& function, std::span<const plugin::Op> not_yet) {
  for (const FunctionNode& node : function.nodes) {
    const auto found = std::ranges::find_if(not_yet, [&node](const plugin::Op& op) {
      return op.definition != nullptr && node.op == op.name && node.domain == op.domain;
    });
    require(found == not_yet.end(), ErrorCode::kBadInput,
            "op {}: its definition uses {}, which is not defined before it", function.name,
            node.op);
  }
}

void add_definition(OpDef& row, const plugin::Op& op, const OpTable& ops,
                    std::span<const plugin::Op> not_yet) {
  std::vector<FunctionText> functions =
      parse_functions(op.definition, fmt::format("the definition of {}", op.name));
  const FunctionText& function = functions.front();
  require(functions.size() == 1 && function.name == op.name &&
              static_cast<int>(function.inputs.size()) == op.max_inputs &&
              static_cast<int>(function.outputs.size()) == op.max_outputs,
          ErrorCode::kBadInput,
          "op {}: its definition is no single function {} of {} inputs and {} outputs", op.name,
          op.name, op.max_inputs, op.max_outputs);
  check_ops(function, ops);
  require(std::ranges::count(function.outputs, kNothing) == 0, ErrorCode::kBadInput,
          "op {}: its definition makes no result of one of its outputs", op.name);
  check_order(function, not_yet);
  row.params = nullptr;
  row.decompose = [shared = std::make_shared<const FunctionText>(function)](Builder& b,
                                                                            const Node& node) {
    std::vector<ValueId> inputs = node.inputs;
    inputs.resize(shared->inputs.size(), kNoValue);
    std::vector<bool> wanted;
    for (const ValueId output : node.outputs) wanted.push_back(output != kNoValue);
    wanted.resize(shared->outputs.size(), false);
    const DType first =
        inputs.empty() || inputs[0] == kNoValue ? DType::kF32 : b.type(inputs[0]).dtype;
    std::vector<ValueId> results =
        build(*shared, {.b = b,
                        .inputs = inputs,
                        .attributes = node.attributes,
                        .float_type = is_float(first) ? first : DType::kF32,
                        .wanted = wanted});
    results.resize(node.outputs.size(), kNoValue);
    check_results(b, node, results);
    return results;
  };
}

}  // namespace

std::vector<OpDef> plugin_rows(const plugin::Plugin& plugin, const OpTable& ops) {
  std::vector<plugin::Op> given;
  std::vector<OpDef> rows;
  OpTable all = ops;
  for (std::int32_t i = 0; i < plugin.op_count; ++i) {
    const std::optional<plugin::Op> op = taken(plugin.ops[i]);
    require(op.has_value(), ErrorCode::kBadInput, "op number {} is not there, or has no size", i);
    check_op(*op, all.rows());
    given.push_back(*op);
    rows.push_back(row_of_op(*op, is_step(plugin, op->name)));
    all.add({rows.back()});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (given[i].gradient != nullptr) add_gradient(rows[i], given[i], all);
    if (given[i].definition != nullptr) {
      add_definition(rows[i], given[i], all, std::span(given).subspan(i));
    }
  }
  return rows;
}

}  // namespace trainscope
