// Every example of every op row with one number, dimension, type or place of it made hostile: the
// shape rule refuses it as bad input, or what it accepts can be built and computed.
#include <doctest/doctest.h>

#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kHostile[] = {
    kLeast, -(std::int64_t{1} << 32), -1, 0, 3, std::int64_t{1} << 31, std::int64_t{1} << 40,
    kMost};
constexpr double kHostileNumbers[] = {0.0, -1.0, 1e308, -1e308, 1e-320};
constexpr std::int64_t kMostElements = 256;  // larger examples have nothing new to say

struct Call {
  const OpDef* row;
  std::vector<std::optional<Tensor>> inputs;
  Attributes attributes;
  int outputs = 1;
};

const std::shared_ptr<const OpTable>& shared_ops() {
  static const auto table = std::make_shared<const OpTable>(standard_ops());
  return table;
}
const OpTable& ops() { return *shared_ops(); }

// The limit is of one call: each has an evaluator of its own, and a share of the tables.
Evaluate limited_evaluator() {
  static const auto kernels = std::make_shared<const KernelTable>(cpu_kernels());
  return evaluator(shared_ops(), kernels, {.limit = kKnownValuesLimit});
}

// "" when the node is refused as bad input or built, else what happened instead.
std::string outcome(const Call& call) {
  const Evaluate evaluate = limited_evaluator();
  Graph graph;
  Builder b(graph, ops());
  b.set_evaluate(&evaluate);
  Builder::Spec spec;
  spec.op = call.row;
  spec.name = "node";
  spec.provenance = {.sources = {"node"}, .pass = "test"};
  for (const std::optional<Tensor>& input : call.inputs) {
    spec.inputs.push_back(input ? b.constant(*input) : kNoValue);
  }
  for (int i = 0; i < call.outputs; ++i) spec.output_names.push_back("y" + std::to_string(i));
  spec.attributes = call.attributes;
  NodeId id = kNoNode;
  try {
    id = b.add(std::move(spec));
    const NodeArgs args(graph, graph.node(id));
    if (call.row->params) call.row->params(*args);
    cost_of(*call.row, *args);
    if (call.row->in_place) call.row->in_place(*args);
    return join(verify(graph), "; ");
  } catch (const Error& error) {
    if (id != kNoNode) return "what the shape rule accepts, another refuses: " + error.message();
    const bool documented = error.code() == ErrorCode::kBadInput && !error.message().empty();
    return documented ? "" : "code or message: " + error.message();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
}

// Calls `each` with the call and what was changed.
template <typename F>
void with_hostile_integers(const Ints& numbers, F each) {
  for (std::size_t i = 0; i < numbers.size() && i < 4; ++i) {
    for (std::int64_t number : kHostile) {
      Ints changed = numbers;
      changed[i] = number;
      each(changed);
    }
  }
  if (numbers.empty()) return;
  each(Ints());
  each(Ints(numbers.begin(), numbers.end() - 1));
  Ints longer = numbers;
  longer.push_back(numbers.front());
  each(longer);
}

template <typename F>
void with_hostile_attribute(const Call& call, const std::string& name, F each) {
  const auto changed = [&](Attribute value) {
    Call other = call;
    other.attributes.set(name, std::move(value));
    each(other, "attribute " + name);
  };
  for (std::int64_t number : kHostile) {
    changed(number);
    changed(Ints{number, number});
  }
  for (double number : kHostileNumbers) changed(number);
  changed(std::string());
  changed(std::string("hostile"));
  const auto given = call.attributes.map().find(name);
  if (given == call.attributes.map().end()) return;
  if (const auto* numbers = std::get_if<Ints>(&given->second)) {
    with_hostile_integers(*numbers, [&](const Ints& other) { changed(other); });
  }
  Call without = call;
  without.attributes.erase(name);
  each(without, "without attribute " + name);
}

// Zeros of shapes next to the given one.
std::vector<Shape> hostile_shapes(const Shape& shape) {
  std::vector<Shape> shapes{Shape{}, Shape{shape.elements()}};
  for (int axis = 0; axis < shape.rank; ++axis) {
    for (std::int64_t size : {std::int64_t{0}, shape[axis] + 1}) {
      shapes.push_back(shape);
      shapes.back()[axis] = size;
    }
  }
  if (shape.rank < kMaxRank) {
    shapes.push_back(shape);
    shapes.back().push_back(1);
  }
  return shapes;
}

template <typename F>
void with_hostile_input(const Call& call, std::size_t i, F each) {
  const std::string what = "input " + std::to_string(i);
  const auto changed = [&](std::optional<Tensor> tensor) {
    Call other = call;
    other.inputs[i] = std::move(tensor);
    each(other, what);
  };
  changed(std::nullopt);
  if (!call.inputs[i]) return;
  const Tensor& given = *call.inputs[i];
  for (DType dtype : kAllDTypes) changed(convert(given, dtype));
  for (const Shape& shape : hostile_shapes(given.shape())) {
    changed(Tensor({.dtype = given.dtype(), .shape = shape}));
  }
  const bool integers = given.dtype() == DType::kI64 || given.dtype() == DType::kI32;
  if (integers) {
    with_hostile_integers(as_ints(given), [&](const Ints& numbers) {
      if (std::ssize(numbers) != given.elements()) return changed(Tensor::ints(numbers));
      changed(convert(Tensor::ints(numbers).reshaped(given.shape()), given.dtype()));
    });
  }
  if (given.dtype() != DType::kF32 || given.elements() == 0) return;
  for (float number : {HUGE_VALF, -HUGE_VALF, std::nanf(""), 3e38F, -3e38F}) {
    Tensor other = given;
    other.values<float>()[0] = number;
    changed(std::move(other));
  }
}

template <typename F>
void with_hostile_changes(const Call& call, F each) {
  for (const auto& [name, value] : call.attributes.map()) with_hostile_attribute(call, name, each);
  for (const AttributeSpec& spec : call.row->attributes) {
    const std::string name(spec.name);
    if (!call.attributes.has(name)) with_hostile_attribute(call, name, each);
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i) with_hostile_input(call, i, each);
  Call other = call;
  if (!call.inputs.empty()) other.inputs.push_back(call.inputs.back());
  each(other, "an input more");
  other = call;
  if (!other.inputs.empty()) other.inputs.pop_back();
  each(other, "an input less");
  for (int outputs = 1; outputs <= 6; ++outputs) {
    other = call;
    other.outputs = outputs;
    each(other, std::to_string(outputs) + " outputs");
  }
}

std::optional<Call> call_of(const OpDef& row, std::string_view text) {
  const OpCase example(row, text, DType::kF32);
  Call call{.row = &row,
            .inputs = {},
            .attributes = example.example().attributes,
            .outputs = example.example().output_count};
  for (std::size_t i = 0; i < example.inputs().size(); ++i) {
    if (example.inputs()[i].elements() > kMostElements) return std::nullopt;
    call.inputs.push_back(example.has(i) ? std::optional<Tensor>(example.inputs()[i])
                                         : std::nullopt);
  }
  return call;
}

}  // namespace

// In a process of its own: under sanitizers it takes longer than all others together.
TEST_CASE("hostile examples: each is refused as bad input, or built and computed" *
          doctest::test_suite("long")) {
  int calls = 0;
  for (const OpDef* row : ops().rows()) {
    CAPTURE(row->name);
    for (std::string_view text : row->examples) {
      const std::optional<Call> call = call_of(*row, text);
      if (!call) continue;
      CAPTURE(text);
      with_hostile_changes(*call, [&calls](const Call& changed, const std::string& what) {
        CAPTURE(what);
        CHECK(outcome(changed) == "");
        ++calls;
      });
    }
  }
  CHECK(calls > 10'000);
  MESSAGE(calls, " calls");
}

}  // namespace trainscope::test
