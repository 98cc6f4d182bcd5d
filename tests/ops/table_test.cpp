// The op table as a whole: what each row must declare, and that kernels and rows match.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

bool has_empty_tensor(const Example& example) {
  return std::any_of(example.inputs.begin(), example.inputs.end(), [](const ExampleInput& input) {
    return input.present && input.type.elements() == 0;
  });
}

// Whether some example has an input that could be empty: neither scalar nor fixed in the text.
bool could_be_empty(const Example& example) {
  return std::any_of(example.inputs.begin(), example.inputs.end(), [](const ExampleInput& input) {
    return input.present && input.fill != Fill::kGiven && input.type.shape.rank > 0;
  });
}

// Every op of the reference models (meta.json of each).
constexpr std::string_view kModelOps[] = {"Add",
                                          "AveragePool",
                                          "BatchNormalization",
                                          "Cast",
                                          "Concat",
                                          "Constant",
                                          "ConstantOfShape",
                                          "Conv",
                                          "Cos",
                                          "Div",
                                          "Dropout",
                                          "Equal",
                                          "Erf",
                                          "Expand",
                                          "Flatten",
                                          "Gather",
                                          "Gemm",
                                          "GlobalAveragePool",
                                          "LayerNormalization",
                                          "LogSoftmax",
                                          "MatMul",
                                          "MaxPool",
                                          "Mul",
                                          "Neg",
                                          "Pad",
                                          "Pow",
                                          "ReduceMean",
                                          "Relu",
                                          "Reshape",
                                          "Shape",
                                          "Sigmoid",
                                          "Sin",
                                          "Slice",
                                          "Softmax",
                                          "Split",
                                          "Sqrt",
                                          "Sub",
                                          "Tanh",
                                          "Transpose",
                                          "Trilu",
                                          "Unsqueeze",
                                          "Where"};

}  // namespace

TEST_CASE("op table: holds all ops of the reference models") {
  const OpTable ops = standard_ops();
  for (std::string_view name : kModelOps) CHECK_MESSAGE(ops.find(name) != nullptr, name);
}

TEST_CASE("op table: every row has a text, a shape rule and examples, an empty one among them") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    INFO(row->name);
    CHECK(!row->doc.empty());
    CHECK((row->shape != nullptr));
    // What a body does is no text: tests/engine/control_flow_test.cpp has graphs for it.
    CHECK((row->body != nullptr || !row->examples.empty()));
    CHECK(row->tolerance_f32 <= 1e-4);
    bool empty = false;
    bool possible = false;
    for (std::string_view text : row->examples) {
      const Example example = parse_example(text);
      empty = empty || has_empty_tensor(example);
      possible = possible || could_be_empty(example);
    }
    CHECK_MESSAGE((empty || !possible), "no example with an empty tensor");
  }
}

TEST_CASE(
    "op table: an ONNX op has a gradient, through its decomposition at least, or none at all") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    if (row->domain != kOnnxDomain || row->differentiable == Differentiable::kNo) continue;
    CHECK_MESSAGE((row->gradient || row->decompose), row->name, " has no gradient");
  }
}

TEST_CASE("op table: every kernel belongs to a row, and f32 kernels have an f64 one") {
  const OpTable ops = standard_ops();
  std::set<std::string> f64;
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    if (row.dtype == DType::kF64) f64.insert(std::string(row.op));
  }
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    INFO(row.kernel.name);
    const std::vector<const OpDef*> rows = ops.rows();
    CHECK(std::ranges::find(rows, row.op, &OpDef::name) != rows.end());
    CHECK((row.kernel.run != nullptr));
    if (row.dtype == DType::kF32) CHECK(f64.contains(std::string(row.op)));
  }
}

namespace {

// The types of an example's inputs, the float ones of type `dtype`.
std::vector<TensorType> input_types(const Example& example, DType dtype) {
  std::vector<TensorType> types;
  for (const ExampleInput& input : example.inputs) {
    types.push_back(input.type);
    if (input.present && input.any_float) types.back().dtype = dtype;
  }
  return types;
}

// Whether the row's rule takes tensors of this type where the example has floats.
bool takes(const OpDef& row, std::string_view text, DType dtype) {
  try {
    const OpCase plain(row, text, DType::kF32);
    const std::vector<TensorType> types = input_types(plain.example(), dtype);
    OpArgs args = plain.args();
    args.inputs = types;
    args.outputs = {};
    return types != input_types(plain.example(), DType::kF32) && !row.shape(args).empty();
  } catch (const Error&) {
    return false;
  }
}

// Truth values too: it moves elements and computes with none.
bool moves_elements(const OpDef& row, std::string_view text) {
  return takes(row, text, DType::kBool);
}

bool has_kernel(const KernelTable& kernels, const OpDef& row, DType dtype) {
  return row.is_view || !kernels.find(row.name, dtype).empty();
}

TEST_CASE("op table: renamed ops are found by both names, in their domain alone") {
  const std::map<std::string_view, std::string_view> renamed{{"CountedRows", "CompactRows"},
                                                             {"CountedMatMul", "CompactMatMul"},
                                                             {"SummedMatMul", "MatMulAdd"}};
  const OpTable table = standard_ops();
  for (const auto& [then, now] : renamed) {
    CAPTURE(then);
    const OpDef* row = table.find(then, kTrainscopeDomain);
    REQUIRE(row != nullptr);
    CHECK(row->name == now);
    CHECK(row == table.find(now, kTrainscopeDomain));
    CHECK(table.find(then) == nullptr);
  }
  for (const OpDef* row : table.rows()) {
    if (row->formerly.empty()) continue;
    CAPTURE(row->name);
    CHECK(renamed.contains(row->formerly));
  }
}

}  // namespace

// Passes and planners put some of these between values of any type: copies to and from host memory,
// rows that are left out, slices of values.
TEST_CASE("op table: what moves elements has a kernel for every type that is stored") {
  const OpTable ops = standard_ops();
  const KernelTable kernels = cpu_kernels();
  int rows = 0;
  for (const OpDef* row : ops.rows()) {
    const bool moves = std::ranges::any_of(
        row->examples, [&](std::string_view text) { return moves_elements(*row, text); });
    if (!moves || row->decompose) continue;
    ++rows;
    for (const DType dtype : kAllDTypes) {
      const bool refused =
          is_storage(dtype) && std::ranges::none_of(row->examples, [&](std::string_view text) {
            return takes(*row, text, dtype);
          });
      if (refused) continue;
      CHECK_MESSAGE(has_kernel(kernels, *row, dtype), row->name, " for ", name_of(dtype));
    }
  }
  CHECK(rows > 10);
}

TEST_CASE("op table: what takes part in mixed precision has kernels for both types of two bytes") {
  const OpTable ops = standard_ops();
  const KernelTable kernels = cpu_kernels();
  for (const OpDef* row : ops.rows()) {
    if (row->precision == Precision::kF32 || row->decompose) continue;
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      CHECK_MESSAGE(has_kernel(kernels, *row, dtype), row->name, " for ", name_of(dtype));
    }
  }
}

TEST_CASE("op table: costs are not negative and cover what is written") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      try {
        const OpCase op_case(*row, text, DType::kF32);
        const Cost cost = cost_of(*row, op_case.args());
        CHECK(cost.flops >= 0);
        CHECK(cost.bytes_read >= 0);
        std::int64_t written = 0;
        for (const TensorType& type : op_case.outputs()) {
          written += static_cast<std::int64_t>(type.bytes());
        }
        const bool computed_before = row->is_view || cost.bytes_written == 0;
        // Rows that change in place, beside others that stay as they are.
        const bool into_sum = row->name == "GatherGrad" && op_case.inputs().size() == 3;
        const bool of_rows = !row->dense_form.empty();
        const bool covered = cost.bytes_written >= written || into_sum || of_rows;
        CHECK((computed_before ? cost.bytes_written == 0 : covered));
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
  }
}

TEST_CASE("op table: in-place pairs name existing inputs and outputs of one size") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      try {
        const OpCase op_case(*row, text, DType::kF32);
        for (const InPlace& pair : op_case.in_place()) {
          const auto input = static_cast<std::size_t>(pair.input);
          const auto output = static_cast<std::size_t>(pair.output);
          REQUIRE(input < op_case.inputs().size());
          REQUIRE(output < op_case.outputs().size());
          CHECK(op_case.has(input));
          CHECK(op_case.inputs()[input].bytes() == op_case.outputs()[output].bytes());
        }
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
  }
}

}  // namespace trainscope::test
