// The CUDA kernels in the emulator on shapes that the op suite's examples do not reach: several
// tiles, rows that a block computes, channels in parts, sums in shares, tables that are full.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

// `count` times the text, with commas between.
std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += fmt::format("{}{}", i == 0 ? "" : ", ", text);
  return result;
}

// The distance of neighbours for types of two bytes.
double limit_of(const OpDef& row, DType type) {
  if (type == DType::kF32) return row.tolerance_f32;
  return type == DType::kBF16 ? 0x1p-7 : 0x1p-10;
}

// The example on the first CUDA kernel that takes it against the CPU's reference in f64, of two
// bytes in the same type, in two orders of threads.
void check_example(std::string_view op, std::string_view text, DType type = DType::kF32) {
  static const OpTable ops = standard_ops();
  static const KernelTable kernels = cuda::own_kernels();
  static const Evaluate reference =
      evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  INFO(op, " \"", text, "\" ", name_of(type));
  const OpDef* row = ops.find(op);
  if (row == nullptr) row = ops.find(op, kTrainscopeDomain);
  REQUIRE(row != nullptr);
  const OpCase op_case(*row, text, type);
  const OpCase exact(*row, text, type == DType::kF32 ? DType::kF64 : type);
  const auto candidates = kernels_for(op_case, kernels);
  REQUIRE(!candidates.empty());
  const std::vector<Tensor> want =
      reference(*row, exact.example().attributes, exact.input_pointers(), exact.outputs());
  const RunResult run = run_kernel(op_case, *candidates[0], {});
  for (const std::string& fault : run.faults) FAIL_CHECK(fault);
  REQUIRE(run.outputs.size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    const double error = relative_error(run.outputs[k], want[k]);
    CHECK_MESSAGE(error <= limit_of(*row, type), "output ", k, ": relative error ", error);
  }
  cuda::emulator::set_seed(7);
  const RunResult again = run_kernel(op_case, *candidates[0], {.poison = 0xFF});
  cuda::emulator::set_seed(0);
  CHECK(same_bytes(run.outputs, again.outputs));
}

}  // namespace

TEST_CASE("cuda wide shapes: attention of heads wider than a tile, and of several tiles") {
  check_example("Attention", "[1,70,2,72], [1,130,1,72], [1,130,1,72]; outputs=2");
  check_example("Attention", "[1,65,3,200]; q_heads=1 causal=1 outputs=2");
  check_example("Attention",
                "[1,66,2,100], [1,66,2,100], [1,66,2,100], [2,1,66], i64[]={3}; "
                "causal=1 ratio=0.2 seed=5 outputs=2");
  check_example("AttentionGrad",
                "[1,70,2,72], [1,70,2,72], [1,2,70,2], [1,70,2,72], "
                "[1,130,1,72], [1,130,1,72]; outputs=3");
  check_example("AttentionGrad",
                "[1,65,1,200], [1,65,1,200], [1,1,65,2], [1,65,3,200]; q_heads=1 causal=1");
  check_example("AttentionGrad",
                "[1,66,2,100], [1,66,2,100], [1,2,66,2], [1,66,2,100], [1,66,2,100], "
                "[1,66,2,100], [2,1,66], i64[]={3}; causal=1 ratio=0.2 seed=5 outputs=3");
}

// Several tiles of queries and of keys, ragged; heads of 64, of less, of more; rows that cannot be
// copied by 16 bytes; shared keys; a bias; dropout.
TEST_CASE("cuda wide shapes: attention on tensor cores") {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    check_example("Attention", "[1,300,6,64]; q_heads=2 causal=1 outputs=2", type);
    check_example("Attention", "[2,70,4,72], [2,130,2,72], [2,130,2,72]; outputs=2", type);
    check_example("Attention", "[1,70,2,27], [1,129,1,27], [1,129,1,27]; outputs=2", type);
    check_example("Attention",
                  "[1,66,2,100], [1,66,2,100], [1,66,2,100], f32[2,1,66], i64[]={3}; "
                  "causal=1 ratio=0.2 seed=5 outputs=2",
                  type);
    check_example("Attention",
                  "[1,130,4,40], [1,131,2,40], [1,131,2,40], -, i64[]={3}; ratio=0.3 seed=5 "
                  "outputs=2",
                  type);
    check_example("AttentionGrad",
                  "[1,200,2,64], [1,200,2,64], f32[1,2,200,2], [1,200,6,64]; q_heads=2 causal=1",
                  type);
    check_example("AttentionGrad",
                  "[2,70,4,72], [2,70,4,72], f32[2,4,70,2], [2,70,4,72], [2,130,2,72], "
                  "[2,130,2,72]; outputs=3",
                  type);
    check_example("AttentionGrad",
                  "[1,70,2,27], [1,70,2,27], f32[1,2,70,2], [1,70,2,27], [1,129,1,27], "
                  "[1,129,1,27]; outputs=3",
                  type);
    check_example("AttentionGrad",
                  "[1,66,2,100], [1,66,2,100], f32[1,2,66,2], [1,66,2,100], [1,66,2,100], "
                  "[1,66,2,100], f32[2,1,66], i64[]={3}; causal=1 ratio=0.2 seed=5 outputs=3",
                  type);
    check_example("AttentionGrad",
                  "[1,130,4,40], [1,130,4,40], f32[1,4,130,2], [1,130,4,40], [1,131,2,40], "
                  "[1,131,2,40], -, i64[]={3}; ratio=0.3 seed=5 outputs=3",
                  type);
  }
}

// Nobody sees the first tile of keys.
TEST_CASE("cuda wide shapes: attention on tensor cores with a bias of -inf") {
  const std::string unseen = repeated("-inf", 66) + ", 0, 1, 0.5, -1";
  for (const DType type : {DType::kBF16, DType::kF16}) {
    check_example(
        "Attention",
        fmt::format("[1,5,2,8], [1,70,2,8], [1,70,2,8], f32[70]={{{}}}; outputs=2", unseen), type);
  }
}

// Every key is padding: what is left of the scores is the mask's number, alike for each key.
TEST_CASE(
    "cuda wide shapes: attention on tensor cores that a mask of the least number hides whole") {
  const std::string hidden = repeated("-3.4028235e38", 70);
  const std::string statistics = repeated("-3.4028235e38, 0.0142857143", 10);
  for (const DType type : {DType::kBF16, DType::kF16}) {
    check_example(
        "Attention",
        fmt::format("[1,5,2,8], [1,70,2,8], [1,70,2,8], f32[70]={{{}}}; outputs=2", hidden), type);
    check_example("AttentionGrad",
                  fmt::format("[1,5,2,8], [1,5,2,8], f32[1,2,5,2]={{{}}}, [1,5,2,8], [1,70,2,8], "
                              "[1,70,2,8], f32[70]={{{}}}; outputs=3",
                              statistics, hidden),
                  type);
  }
}

TEST_CASE("cuda wide shapes: attention on tensor cores with a scale below 0") {
  check_example("Attention", "[1,70,2,8], [1,70,2,8], [1,70,2,8]; scale=-0.7 outputs=2",
                DType::kF16);
  check_example("AttentionGrad",
                "[1,70,2,8], [1,70,2,8], f32[1,2,70,2], [1,70,2,8], [1,70,2,8], [1,70,2,8]; "
                "scale=-0.7 outputs=3",
                DType::kF16);
}

// Whole packs of eight along several axes, rows of half a pack, an element for a whole row, a rest.
TEST_CASE("cuda wide shapes: elementwise kernels of two bytes take eight elements") {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    check_example("Add", "[9,1032], [1032]", type);
    check_example("Add", "[9,1028], [1028]", type);
    check_example("Mul", "[7,12,40], [12,1]", type);
    check_example("Sub", "[3,1,40], [1,25,1]", type);
    check_example("Where", "bool[3,1,40], [25,1], [40]", type);
    check_example("Relu", "[2,1023]", type);
    check_example("Add", "[5001], [5001]", type);
  }
}

TEST_CASE("cuda wide shapes: rows that a block normalises, and sums of many rows") {
  check_example("LayerNormalization", "[3,1500], [1500], [1500]; outputs=3");
  check_example("LayerNormalizationGrad", "[300,70], [300,70], [70]; outputs=3");
  check_example("LayerNormalizationGrad", "[20,5001], [20,5001], [5001]; outputs=3");
  check_example("RMSNormalizationGrad", "[33,1025], [33,1025], [1025]; outputs=2");
  check_example("Softmax", "[3,2001]");
  check_example("LogSoftmaxGrad", "[2,1025], [2,1025]");
}

// Of two-byte types scale and bias are f32.
TEST_CASE("cuda wide shapes: rows that a warp holds") {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    const auto check = [type](std::string_view op, std::string_view rows, int width,
                              std::string_view rest) {
      check_example(
          op, fmt::format("{}, {}[{}]{}", rows, type == DType::kF32 ? "" : "f32", width, rest),
          type);
    };
    check("LayerNormalizationGrad", "[70,768], [70,768]", 768, "; outputs=3");
    check("LayerNormalizationGrad", "[9,1024], [9,1024]", 1024, ", [9,1024]; outputs=3");
    check("LayerNormalizationGrad", "[3,264], [3,264]", 264, "");
    check("LayerNormalizationGrad", "[1,8], [1,8]", 8, "; outputs=2");
    check("RMSNormalizationGrad", "[45,392], [45,392]", 392, "; outputs=2");
    check("RMSNormalization", "[5,1032]", 1032, "");
    check("RMSNormalization", "[5,1028]", 1028, "");
  }
}

TEST_CASE("cuda wide shapes: columns of two-byte elements that are summed by eights and fours") {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    check_example("ReduceSumWide", "[300,72], i64[1]={0}; keepdims=0", type);
    check_example("ReduceSumWide", "[300,76], i64[1]={0}; keepdims=0", type);
    check_example("ReduceSum", "[3,40,1032], i64[2]={0,1}", type);
    check_example("ReduceMean", "[700,8]; axes={0}", type);
  }
}

TEST_CASE("cuda wide shapes: channels in parts") {
  check_example("BatchNormalization",
                "[5,3,40,41], [3], [3], [3], [3]>0; training_mode=1 outputs=3");
  check_example("BatchNormalizationGrad",
                "[5,3,40,41], [5,3,40,41], [3]; training_mode=1 outputs=3");
}

TEST_CASE("cuda wide shapes: losses over many classes and rows") {
  check_example("CrossEntropy", "[3,3001], i64[3]<3001; outputs=3");
  check_example("CrossEntropy", "[1500,7], i64[1500]<7; outputs=3");
  check_example("CrossEntropyGrad", "[], [3,3001], i64[3]<3001, [3], []>0");
  check_example("MeanSquaredError", "[9001], [9001]");
}

// Tensors without elements take a row of a table and no block.
TEST_CASE("cuda wide shapes: more tensors than a launch's table holds") {
  check_example("GlobalNorm", repeated("[3]", 40) + ", " + repeated("[0]", 2282) + ", [20001]");
  check_example("AddPartials", repeated("[1300]", 130));
  const std::string many = repeated("[3]", 40) + ", " + repeated("[0]", 562) + ", [9001]";
  const std::string positive = repeated("[3]>0", 40) + ", " + repeated("[0]", 562) + ", [9001]>0";
  for (const std::string_view op : {"AdamWStep", "LambStep"}) {
    check_example(op, fmt::format("{0}, {0}, {0}, {1}, []>0, []>0, i64[]={{3}}; outputs=1809", many,
                                  positive));
  }
}

TEST_CASE("cuda wide shapes: rows that count among many") {
  check_example("CompactRows", "i64[2501]<3; ignore_index=1 outputs=2");
  check_example("CompactMatMul", "[70,90], [90,80], i64[]={67}, [80]");
  check_example("CompactMatMul", "[90,70], [90,80], i64[]={81}; transpose_a=1");
}

TEST_CASE("cuda wide shapes: convolutions of several tiles, depths in shares") {
  check_example("Conv", "[2,5,17,18], [70,5,3,3], [70]; pads={1,1,1,1} strides={2,1}");
  check_example("ConvGradInput",
                "[2,20,9,18], [20,66,3,3]; input_shape={2,66,17,18} "
                "pads={1,1,1,1} strides={2,1}");
  check_example("ConvGradWeight", "[3,9,20,20], [3,70,20,20]; kernel_shape={3,3} pads={1,1,1,1}");
  check_example("ConvGradWeight",
                "[2,6,21,20], [2,8,21,20]; kernel_shape={3,3} group=2 "
                "pads={1,1,1,1}");
}

}  // namespace trainscope::test
