// Sizes and strides beyond 32 bits: what oneDNN is not asked for, and right numbers of our own
// kernels on tensors of which there is memory only where it is touched.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/gemm/gemm.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kBeyond = (std::int64_t{1} << 32) + 4;  // elements, cut to 32 bits: 4
constexpr std::int64_t kMostResident = std::int64_t{1} << 30;

// Elements without memory; a page comes when it is touched.
template <typename T>
class Sparse {
 public:
  explicit Sparse(std::int64_t elements)
      : bytes_(static_cast<std::size_t>(elements) * sizeof(T)),
        data_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
    ::madvise(data_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Sparse() { ::munmap(data_, bytes_); }
  Sparse(const Sparse&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  T& operator[](std::int64_t i) const { return data()[i]; }

 private:
  std::size_t bytes_;
  void* data_;
};

std::int64_t resident_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

// Small integers: their products and sums are exact in every type.
double number(std::int64_t i, std::int64_t j) { return static_cast<double>((3 * i + 5 * j) % 7); }

// --- Matmuls -------------------------------------------------------------------------------------

// Element (i, j) is at i * row + j * column.
template <typename T>
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns, bool transposed)
      : row(transposed ? 1 : kBeyond),
        column(transposed ? kBeyond : 1),
        memory((transposed ? columns : rows) * kBeyond) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) memory[i * row + j * column] = T(number(i, j));
    }
  }
  std::int64_t row, column;
  Sparse<T> memory;
};

TEST_CASE_TEMPLATE("gemm: strides of 2^32 + 4 elements are right", T, float, double, BFloat16) {
  using Sum = Computed<T>;
  // Whole tiles and what lies beside them.
  constexpr GemmSize kSize{.m = 13, .n = 37, .k = 9};
  for (const GemmTile<T>& tile : gemm_tiles<T>()) {
    for (const auto& [transpose_a, transpose_b] :
         {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
      const Matrix<T> a(kSize.m, kSize.k, transpose_a);
      const Matrix<T> b(kSize.k, kSize.n, transpose_b);
      const Matrix<Sum> d(kSize.m, kSize.n, false);
      const Sparse<Sum> c(kSize.m * kBeyond);
      const GemmPlan<T> plan = plan_gemm<T>(kSize, 2, tile);
      const Sparse<std::byte> workspace(static_cast<std::int64_t>(plan.workspace_bytes()));
      run_gemm(plan, workspace.data(), 2, [&](std::int64_t) {
        return GemmOperands<T, Sum>{.a = a.memory.data(),
                                    .a_row = a.row,
                                    .a_column = a.column,
                                    .b = b.memory.data(),
                                    .b_row = b.row,
                                    .b_column = b.column,
                                    .c = c.data(),
                                    .c_row = kBeyond,
                                    .d = d.memory.data(),
                                    .d_row = d.row,
                                    .d_column = d.column,
                                    .alpha = 1,
                                    .beta = 2};
      });
      CHECK(resident_bytes() < kMostResident);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < kSize.m; ++i) {
        for (std::int64_t j = 0; j < kSize.n; ++j) {
          double want = 2 * number(i, j);
          for (std::int64_t p = 0; p < kSize.k; ++p) want += number(i, p) * number(p, j);
          if (static_cast<double>(c[i * kBeyond + j]) != want) ++wrong;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

// --- Planes of 2^32 + 4 elements -----------------------------------------------------------------

// A kernel on f32 tensors.
struct WideCase {
  const char* op;
  Params params;
  std::vector<Shape> inputs;
  Shape output;
};

// The kernels for an op that take the case, the preferred one first.
std::vector<const Kernel*> taken(const KernelTable& table, std::string_view op,
                                 const PrepareArgs& args) {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : table.find(op, DType::kF32)) {
    if (kernel->supports == nullptr || kernel->supports(args)) kernels.push_back(kernel);
  }
  return kernels;
}

std::vector<TensorView> views(const std::vector<Shape>& shapes) {
  std::vector<TensorView> list;
  for (const Shape& shape : shapes) {
    list.push_back({.type = {.dtype = DType::kF32, .shape = shape}, .data = nullptr});
  }
  return list;
}

// Windows of one element in each plane see its first and its last row.
constexpr std::int64_t kStep = std::int64_t{1} << 30;
constexpr std::int64_t kPlanes = 4;
constexpr std::int64_t kWidth = 4;
const Shape kWidePlanes{1, 1, kPlanes, kStep + 1, kWidth};

WindowParams window(std::int64_t planes) {
  return {.rank = 3, .kernel = {planes, 1, 1}, .stride = {1, kStep, 1}};
}

// Of the first row (i < kWidth) or the last one of a plane.
float element(std::int64_t plane, std::int64_t i) { return static_cast<float>(number(plane, i)); }

// Windows over as many planes as there are factors: the sums of elements, each times its plane's.
std::vector<float> sums(const std::vector<float>& factors) {
  std::vector<float> result;
  for (std::size_t z = 0; z + factors.size() <= kPlanes; ++z) {
    for (std::int64_t i = 0; i < 2 * kWidth; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < factors.size(); ++k) {
        sum += factors[k] * element(static_cast<std::int64_t>(z + k), i);
      }
      result.push_back(sum);
    }
  }
  return result;
}

// The weights' gradient for dy of 1, 2, 3, ...: each plane's sum over the windows.
std::vector<float> weight_gradient() {
  std::vector<float> result(kPlanes);
  for (std::size_t plane = 0; plane < kPlanes; ++plane) {
    for (std::int64_t i = 0; i < 2 * kWidth; ++i) {
      result[plane] += static_cast<float>(i + 1) * element(static_cast<std::int64_t>(plane), i);
    }
  }
  return result;
}

struct WideRun {
  WideCase of;
  std::vector<float> second;  // input
  std::vector<float> want;
};

const std::vector<WideRun> kRuns = {
    {{"Conv", ConvParams{.window = window(2)}, {kWidePlanes, {1, 1, 2, 1, 1}}, {1, 1, 3, 2, 4}},
     {2, -3},
     sums({2, -3})},
    {{"Conv", ConvParams{.window = window(1)}, {kWidePlanes, {1, 1, 1, 1, 1}}, {1, 1, 4, 2, 4}},
     {2},
     sums({2})},
    {{"ConvGradWeight",
      ConvParams{.window = window(4)},
      {kWidePlanes, {1, 1, 1, 2, 4}},
      {1, 1, 4, 1, 1}},
     {1, 2, 3, 4, 5, 6, 7, 8},
     weight_gradient()},
    {{"AveragePool", PoolParams{.window = window(2)}, {kWidePlanes}, {1, 1, 3, 2, 4}},
     {},
     sums({0.5F, 0.5F})},
    {{"MaxPool", PoolParams{.window = window(1)}, {kWidePlanes}, {1, 1, 4, 2, 4}}, {}, sums({1})},
    {{"Slice", SliceParams{.step = {1, 1, 1, kStep, 1}}, {kWidePlanes}, {1, 1, 4, 2, 4}},
     {},
     sums({1})},
};

TEST_CASE("kernels: what is read of planes of 2^32 + 4 elements is right") {
  const KernelTable table = cpu_kernels();
  const Sparse<float> x(kWidePlanes.elements());
  for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      x[plane * kBeyond + i] = element(plane, i);
      x[plane * kBeyond + kStep * kWidth + i] = element(plane, kWidth + i);
    }
  }
  for (const auto& [of, second, want] : kRuns) {
    CAPTURE(std::string(of.op));
    std::vector<TensorView> inputs = views(of.inputs);
    std::vector<TensorView> outputs = views({of.output});
    const PrepareArgs args{.params = of.params, .inputs = inputs, .outputs = outputs, .threads = 2};
    const std::vector<const Kernel*> kernels = taken(table, of.op, args);
    REQUIRE_FALSE(kernels.empty());
    for (const Kernel* kernel : {kernels.front(), kernels.back()}) {
      CAPTURE(std::string(kernel->name));
      const Prepared prepared = kernel->prepare ? kernel->prepare(args) : Prepared{};
      const Sparse<std::byte> workspace(
          std::max<std::int64_t>(1, static_cast<std::int64_t>(prepared.workspace_bytes)));
      std::vector<float> got(want.size());
      inputs[0].data = x.data();
      if (inputs.size() > 1) inputs[1].data = const_cast<float*>(second.data());
      outputs[0].data = got.data();
      kernel->run({.params = of.params,
                   .inputs = inputs,
                   .outputs = outputs,
                   .workspace = workspace.data(),
                   .state = prepared.state.get(),
                   .threads = 2});
      CHECK(got == want);
      CHECK(resident_bytes() < kMostResident);
    }
  }
}

// --- oneDNN --------------------------------------------------------------------------------------

constexpr std::int64_t kCut = std::int64_t{1} << 32;  // cut to 32 bits: 0

WindowParams plain(std::int64_t kernel) { return {.rank = 2, .kernel = {kernel, kernel, 1}}; }
WindowParams dilated(std::int64_t by) {
  WindowParams params = plain(2);
  params.dilation = {by, 1, 1};
  return params;
}

const std::vector<WideCase> kRefused = {
    {"MatMul", MatMulParams{}, {{kCut, 1}, {1, 1}}, {kCut, 1}},
    {"MatMul", MatMulParams{}, {{1, kCut}, {kCut, 1}}, {1, 1}},
    {"MatMul", MatMulParams{}, {{1, 1}, {1, kCut}}, {1, kCut}},
    {"MatMul", MatMulParams{}, {{2, 1, kCut}, {2, kCut, 1}}, {2, 1, 1}},
    {"Gemm", MatMulParams{.transpose_a = true}, {{1, kCut}, {1, 3}}, {kCut, 3}},
    {"Gemm", MatMulParams{.transpose_b = true}, {{3, kCut}, {5, kCut}}, {3, 5}},
    {"Conv", ConvParams{.window = plain(2)}, {{1, 1, kCut, 4}, {1, 1, 2, 2}}, {1, 1, kCut - 1, 3}},
    {"Conv", ConvParams{.window = plain(2)}, {{kCut, 1, 2, 2}, {1, 1, 2, 2}}, {kCut, 1, 1, 1}},
    {"Conv",
     ConvParams{.window = plain(3)},
     {{2, 3, 1 << 17, 1 << 17}, {4, 3, 3, 3}},
     {2, 4, (1 << 17) - 2, (1 << 17) - 2}},
    {"ConvGradInput",
     ConvParams{.window = plain(2)},
     {{1, 1, kCut - 1, 3}, {1, 1, 2, 2}},
     {1, 1, kCut, 4}},
    {"ConvGradWeight",
     ConvParams{.window = plain(2)},
     {{1, 1, kCut, 4}, {1, 1, kCut - 1, 3}},
     {1, 1, 2, 2}},
    {"Conv",
     ConvParams{.window = dilated(kCut + 1)},
     {{1, 1, kCut + 2, 2}, {1, 1, 2, 2}},
     {1, 1, 1, 1}},
    {"AveragePool", PoolParams{.window = plain(2)}, {{1, 1, kCut, 4}}, {1, 1, kCut - 1, 3}},
    {"AveragePoolGrad", PoolParams{.window = plain(2)}, {{1, 1, kCut - 1, 3}}, {1, 1, kCut, 4}},
    {"MaxPoolGrad",
     PoolParams{.window = plain(2)},
     {{1, 1, kCut - 1, 3}, {1, 1, kCut, 4}},
     {1, 1, kCut, 4}},
};

TEST_CASE("onednn: sizes and strides beyond 32 bits are left to our own kernels") {
  const KernelTable table = cpu_kernels();
  for (const WideCase& refused : kRefused) {
    CAPTURE(std::string(refused.op));
    const std::vector<TensorView> inputs = views(refused.inputs);
    const std::vector<TensorView> outputs = views({refused.output});
    for (int threads : {1, 3}) {
      const std::vector<const Kernel*> kernels = taken(
          table, refused.op,
          {.params = refused.params, .inputs = inputs, .outputs = outputs, .threads = threads});
      CHECK_FALSE(kernels.empty());
      for (const Kernel* kernel : kernels) {
        CAPTURE(std::string(kernel->name));
        // Chunks of a batch may be small enough.
        const bool whole = kernel->name.find("chunks") == std::string_view::npos;
        CHECK_FALSE((whole && kernel->name.find("onednn") != std::string_view::npos));
      }
    }
  }
}

}  // namespace
}  // namespace trainscope::cpu
