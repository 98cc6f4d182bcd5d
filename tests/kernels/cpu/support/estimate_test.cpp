// What kernels compute and move where it is not the op's definition.
#include "kernels/cpu/support/estimate.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/conv/window.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {
namespace {

struct EstimateCase {
  std::string_view op;
  Params params;
  std::vector<Shape> inputs;
  Shape output;
  DType dtype = DType::kF32;
  int threads = 1;
};

// Of the op's kernel whose name is `name`; none: there is none, or it refuses the case. The
// definition has `flops` and each operand once.
std::optional<Estimate> estimate_by(std::string_view name, const EstimateCase& of, double flops,
                                    const void* last_input = nullptr) {
  static const KernelTable table = cpu_kernels();
  std::vector<TensorView> inputs;
  for (const Shape& shape : of.inputs) {
    inputs.push_back({.type = {.dtype = of.dtype, .shape = shape}, .data = nullptr});
  }
  if (last_input != nullptr) {
    inputs.back().type.dtype = DType::kI64;
    inputs.back().data = const_cast<void*>(last_input);
  }
  const std::vector<TensorView> outputs = {
      {.type = {.dtype = of.dtype, .shape = of.output}, .data = nullptr}};
  const PrepareArgs args{
      .params = of.params, .inputs = inputs, .outputs = outputs, .threads = of.threads};
  const Estimate definition = once_through(args, flops).estimate();
  for (const Kernel* kernel : table.find(of.op, of.dtype)) {
    if (kernel->name != name) continue;
    if (kernel->supports != nullptr && !kernel->supports(args)) return std::nullopt;
    return kernel->estimate == nullptr ? definition : kernel->estimate(args, definition);
  }
  return std::nullopt;
}

// 3 x 3 at stride 1 with zeros around.
ConvParams three_by_three() {
  ConvParams params;
  params.window.rank = 2;
  params.window.kernel = {3, 3, 1};
  params.window.stride = {1, 1, 1};
  params.window.dilation = {1, 1, 1};
  params.window.pad_begin = {1, 1, 0};
  params.window.pad_end = {1, 1, 0};
  params.group = 1;
  return params;
}

constexpr double kBytes = sizeof(float);

// Of T steps of N sequences, forward through one direction of a cell of so many gates.
EstimateCase steps_of(std::string_view op, std::int64_t gates, std::int64_t time) {
  constexpr std::int64_t kN = 2;
  constexpr std::int64_t kD = 8;
  constexpr std::int64_t kH = 192;
  return {.op = op,
          .params = RecurrentParams{},
          .inputs = {{time, kN, kD}, {1, gates * kH, kD}, {1, gates * kH, kH}},
          .output = {time, 1, kN, kH}};
}

}  // namespace

TEST_CASE("estimate: counts beyond 63 bits are the largest number") {
  const Estimate most = Work(1e30, 1e19, 5.0).estimate();
  CHECK(most.flops == std::numeric_limits<std::int64_t>::max());
  CHECK(most.bytes_read == std::numeric_limits<std::int64_t>::max());
  CHECK(most.bytes_written == 5);
}

TEST_CASE("estimate: Winograd's form multiplies less than the direct one, which has all") {
  constexpr std::int64_t kN = 8;
  constexpr std::int64_t kChannels = 128;
  constexpr double kFlops = 2.0 * kN * kChannels * kChannels * 16 * 16 * 9;
  const Shape image = {kN, kChannels, 16, 16};
  const Shape weights = {kChannels, kChannels, 3, 3};
  const EstimateCase forward{"Conv", three_by_three(), {image, weights}, image};
  const EstimateCase by_input{"ConvGradInput", three_by_three(), {image, weights}, image};
  const EstimateCase by_weight{"ConvGradWeight", three_by_three(), {image, image}, weights};
  const auto check = [&](std::string_view base, const EstimateCase& of) {
    CAPTURE(base);
    const auto direct = estimate_by(base, of, kFlops);
    REQUIRE(direct.has_value());
    CHECK(direct->flops == static_cast<std::int64_t>(kFlops));
    const auto winograd = estimate_by(std::string(base) + "_winograd", of, kFlops);
    CHECK(winograd.has_value() == has_avx512());
    if (!winograd) return;
    // 36 products for 144, and the transforms beside them.
    CHECK(static_cast<double>(winograd->flops) > kFlops * 36 / 144);
    CHECK(static_cast<double>(winograd->flops) < kFlops * 36 / 144 * 1.1);
    CHECK(winograd->bytes_written > direct->bytes_written);  // what is transformed
  };
  check("conv.onednn", forward);
  check("conv_grad_input.onednn", by_input);
  check("conv_grad_weight.onednn", by_weight);
}

TEST_CASE("estimate: the plain convolution leaves out what lies beyond the image") {
  // Of 16 windows of 3 x 3 on 4 x 4: 4 corners see 4 elements, 8 borders 6, 4 all 9.
  const EstimateCase small{"Conv", three_by_three(), {{2, 3, 4, 4}, {5, 3, 3, 3}}, {2, 5, 4, 4}};
  const auto own = estimate_by("conv.own", small, 0);
  REQUIRE(own.has_value());
  CHECK(own->flops == 2 * (4 * 4 + 8 * 6 + 4 * 9) * 2 * 5 * 3);
  CHECK(own->bytes_written == 2 * 5 * 16 * 4);
}

TEST_CASE("estimate: rows of pixels are whole registers, zeros around them copied") {
  // Rows of 12 pixels in registers of 8: 16 are computed.
  const EstimateCase narrow{
      "Conv", three_by_three(), {{2, 3, 10, 12}, {4, 3, 3, 3}}, {2, 4, 10, 12}};
  const auto done = estimate_by("conv.narrow", narrow, 0);
  REQUIRE(done.has_value());
  CHECK(done->flops == 2 * 2 * 4 * 3 * 9 * 10 * 16);
  const double copied = 2.0 * 3 * 12 * 14;  // with zeros around
  CHECK(static_cast<double>(done->bytes_written) ==
        kBytes * (2 * 4 * 10 * 12 + copied + 4 * 3 * 9));
}

TEST_CASE("estimate: a GEMM computes whole tiles and packs both matrices") {
  constexpr std::int64_t kSide = 300;
  const EstimateCase square{
      "MatMul", MatMulParams{}, {{kSide, kSide}, {kSide, kSide}}, {kSide, kSide}};
  const auto done = estimate_by("matmul.own", square, 0);
  REQUIRE(done.has_value());
  constexpr double kFlops = 2.0 * kSide * kSide * kSide;
  CHECK(static_cast<double>(done->flops) >= kFlops);
  CHECK(static_cast<double>(done->flops) < 1.2 * kFlops);
  constexpr double kMatrix = kBytes * kSide * kSide;
  // A and B are read and packed once each, and read packed.
  CHECK(static_cast<double>(done->bytes_read) >= 4 * kMatrix);
  CHECK(static_cast<double>(done->bytes_read) < 5 * kMatrix);
  CHECK(static_cast<double>(done->bytes_written) >= 3 * kMatrix);
  CHECK(static_cast<double>(done->bytes_written) < 4 * kMatrix);
  // Two threads have a part each and pack what both need twice.
  EstimateCase shared = square;
  shared.threads = 2;
  const auto two = estimate_by("matmul.own", shared, 0);
  CHECK(two->bytes_read > done->bytes_read);
}

TEST_CASE("estimate: masked-label compaction computes the rows that count, if they are known") {
  const EstimateCase of{"CompactMatMul", MatMulParams{}, {{960, 64}, {64, 96}, {}}, {960, 96}};
  const std::int64_t count = 96;
  const auto some = estimate_by("compact_matmul.own", of, 0, &count);
  REQUIRE(some.has_value());
  CHECK(some->flops == 2 * count * 64 * 96);
  CHECK(some->bytes_written >= 960 * 96 * 4);  // the other rows are filled
  const auto all = estimate_by("compact_matmul.own", of, 0);
  CHECK(all->flops == 10 * some->flops);
}

TEST_CASE("estimate: an upcast kernel also converts") {
  const EstimateCase stored{"MatMul", MatMulParams{}, {{8, 8}, {8, 8}}, {8, 8}, DType::kF16};
  const auto upcast = estimate_by("matmul.own_upcast", stored, 1024);
  const EstimateCase plain{"MatMul", MatMulParams{}, {{8, 8}, {8, 8}}, {8, 8}};
  const auto base = estimate_by("matmul.own", plain, 1024);
  REQUIRE(upcast.has_value());
  REQUIRE(base.has_value());
  CHECK(upcast->flops == base->flops);
  CHECK(upcast->bytes_read == base->bytes_read + 2 * 64 * 2 + 64 * 4);
  CHECK(upcast->bytes_written == base->bytes_written + 2 * 64 * 4 + 64 * 2);
}

TEST_CASE("estimate: a causal head's tiles see little more than its queries do") {
  AttentionParams params;
  params.heads = 2;
  params.kv_heads = 2;
  params.causal = true;
  const Shape q = {3, 96, 2, 16};
  const EstimateCase of{"Attention", params, {q, q, q}, q};
  constexpr double kDefinition = 1e6;
  const auto done = estimate_by("attention.own", of, kDefinition);
  REQUIRE(done.has_value());
  CHECK(static_cast<double>(done->flops) > kDefinition);
  CHECK(static_cast<double>(done->flops) < 1.25 * kDefinition);
}

TEST_CASE("pairs_inside: of each axis the elements that windows have inside") {
  Window window{.in = {1, 4, 4}, .out = {1, 4, 4}, .kernel = {1, 3, 3}, .pad = {0, 1, 1}};
  CHECK(pairs_inside(window) == 10 * 10);
  window.pad = {0, 0, 0};
  window.out = {1, 2, 2};
  CHECK(pairs_inside(window) == 2 * 2 * 9);
}

TEST_CASE("estimate: every step of a recurrent kernel reads its packed weights") {
  struct Cell {
    std::string_view op;
    std::string_view kernel;
    std::int64_t gates;
  };
  for (const auto& [op, kernel, gates] :
       {Cell{"Rnn", "rnn.own", 1}, Cell{"Lstm", "lstm.own", 4}, Cell{"Gru", "gru.own", 3}}) {
    CAPTURE(op);
    constexpr std::int64_t kTime = 10;
    const auto own = estimate_by(kernel, steps_of(op, gates, kTime), 1000.0);
    REQUIRE(own.has_value());
    CHECK(own->flops == 1000);
    const double weights = kBytes * 192 * 192 * static_cast<double>(gates);
    const double given = kBytes * 2 * 192 * kTime * static_cast<double>(gates);
    const double x = kBytes * (kTime * 2 * 8 + 192 * 8 * static_cast<double>(gates));
    const double y = kBytes * kTime * 2 * 192;
    CHECK(static_cast<double>(own->bytes_read) == x + weights + kTime * weights + given);
    CHECK(static_cast<double>(own->bytes_written) == y + weights + given);
  }
}

}  // namespace trainscope::cpu
