// The rows that run in bf16 and f16, and their gradients, on inputs that these types hold exactly:
// against the same in f64.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

constexpr std::uint64_t kCotangentStream = 1000;

struct Tables {
  OpTable ops = standard_ops();
};

// Half the distance of neighbours, relative.
double rounding_of(DType stored) { return stored == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

bool stays_f32(const OpDef& row, std::size_t input) {
  return std::ranges::find(row.f32_inputs, static_cast<int>(input)) != row.f32_inputs.end();
}

// One example of a row with its float inputs as numbers of `stored`, or the same numbers in f64.
class Run {
 public:
  Run(const Tables& tables, const OpDef& row, std::string_view text, DType stored)
      : tables_(tables), row_(row), example_(parse_example(text)), stored_(stored) {}

  // Output 0, then its gradients by the float inputs, all as f64.
  std::vector<Tensor> results(const Evaluate& evaluate, DType type) const {
    Graph graph;
    Builder b(graph, tables_.ops);
    b.set_provenance({.sources = {}, .pass = "test"});
    b.set_evaluate(&evaluate);
    std::map<std::string, Tensor> data;
    std::vector<bool> wanted;
    const NodeId node = add_node(b, type, data, wanted);
    const ValueId y = graph.node(node).outputs[0];
    std::vector<ValueId> chosen{y};
    // An f32 result is made by a pass, after the gradients.
    if (row_.differentiable == Differentiable::kYes && !example_.attributes.has("upcast")) {
      std::vector<ValueId> dy(graph.node(node).outputs.size(), kNoValue);
      dy[0] = b.input("dy", b.type(y));
      Tensor cotangent = random_tensor({DType::kF64, b.shape(y)}, kSeed, kCotangentStream);
      data.emplace("dy", convert(convert(cotangent, stored_), b.type(y).dtype));
      for (ValueId dx : backward(b, node, dy, wanted)) {
        if (dx != kNoValue) chosen.push_back(dx);
      }
    }
    const ReferenceValues values = reference_run(graph, data, evaluate);
    std::vector<Tensor> results;
    for (ValueId v : chosen) results.push_back(convert(values.at(v), DType::kF64));
    return results;
  }

 private:
  NodeId add_node(Builder& b, DType type, std::map<std::string, Tensor>& data,
                  std::vector<bool>& wanted) const {
    Builder::Spec spec;
    spec.op = &row_;
    spec.name = "node";
    spec.attributes = example_.attributes;
    spec.provenance = b.provenance();
    for (std::size_t i = 0; i < example_.inputs.size(); ++i) {
      const ExampleInput& input = example_.inputs[i];
      wanted.push_back(input.present && input.any_float && input.fill != Fill::kGiven);
      const std::string name = fmt::format("x{}", i);
      if (!input.present) {
        spec.inputs.push_back(kNoValue);
        continue;
      }
      const Tensor tensor = element_values(i, type);
      if (input.fill == Fill::kGiven) {
        spec.inputs.push_back(b.constant(tensor, name));
      } else {
        spec.inputs.push_back(b.input(name, tensor.type()));
        data.emplace(name, tensor);
      }
    }
    for (int k = 0; k < example_.output_count; ++k) {
      spec.output_names.push_back(fmt::format("y{}", k));
    }
    return b.add(std::move(spec));
  }

  Tensor element_values(std::size_t input, DType type) const {
    const Tensor exact = make_input(example_, input, DType::kF32, kSeed);
    if (!example_.inputs[input].any_float) return exact;
    const bool upcast = stays_f32(row_, input) && is_stored_only(type);
    return convert(convert(exact, stored_), upcast ? computed(type) : type);
  }

  const Tables& tables_;
  const OpDef& row_;
  Example example_;
  DType stored_;
};

void check_row(const Tables& tables, const OpDef& row, std::string_view text, DType stored) {
  const Run run(tables, row, text, stored);
  const Evaluate plain =
      evaluator(tables.ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  const std::vector<Tensor> want = run.results(plain, DType::kF64);
  for (KernelChoice choice : {KernelChoice::kReference, KernelChoice::kFastest}) {
    const Evaluate evaluate = evaluator(tables.ops, cpu_kernels(), {.kernels = choice});
    const std::vector<Tensor> got = run.results(evaluate, stored);
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      // The result is rounded once; what a gradient is made of is rounded on the way too.
      const double bound = (k == 0 ? 1.01 : 4.0) * rounding_of(stored);
      const double error = relative_error(got[k], want[k]);
      CHECK_MESSAGE(error <= bound, "result ", k, ": relative error ", error, ", bound ", bound);
    }
  }
}

}  // namespace

TEST_CASE("op suite: rows that mixed precision stores in two bytes are rounded once") {
  const Tables tables;
  for (DType stored : {DType::kBF16, DType::kF16}) {
    for (const OpDef* row : tables.ops.rows()) {
      if (row->precision == Precision::kF32) continue;
      for (std::string_view text : row->examples) {
        const Example example = parse_example(text);
        const bool any_float = std::ranges::any_of(
            example.inputs, [](const ExampleInput& x) { return x.present && x.any_float; });
        if (!any_float) continue;
        INFO(row->name, " \"", text, "\" ", name_of(stored));
        try {
          check_row(tables, *row, text, stored);
        } catch (const Error& error) {
          FAIL_CHECK(error.message());
        }
      }
    }
  }
}

}  // namespace trainscope::test
