// Graphs on the simulated cuDNN: what is computed is what the descriptors say, by an engine that
// may be used; what is wrong is refused, or gives other numbers.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/cudnn/attention_graphs.h"
#include "kernels/cuda/cudnn/conv_graphs.h"
#include "kernels/cuda/cudnn/plan.h"
#include "tests/cuda/cudnn/library.h"

namespace trainscope::test {
namespace {

using cuda::AttentionShape;
using cuda::ConvShape;
using cuda::CudnnPlan;
using cuda::OpGraph;

constexpr std::size_t kMostWorkspace = std::size_t{1} << 20;
using Floats = std::vector<float>;

Floats numbers(std::size_t count, float seed) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::sin(seed + 1.7F * static_cast<float>(i));
  }
  return values;
}

// Memory of the simulated device, and a stream.
struct Simulated {
  Simulated() {
    REQUIRE(load_simulated_cudnn() == "");
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    workspace = allocated(kMostWorkspace);
  }
  ~Simulated() {
    (void)cudaStreamDestroy(stream);
    for (void* block : blocks) (void)cudaFree(block);
  }
  void* allocated(std::size_t bytes) {
    void* block = nullptr;
    REQUIRE(cudaMalloc(&block, bytes) == cudaSuccess);
    blocks.push_back(block);
    return block;
  }
  void* operand(const Floats& values) {
    void* block = allocated(values.size() * sizeof(float));
    REQUIRE(cudaMemcpyAsync(block, values.data(), values.size() * sizeof(float), cudaMemcpyDefault,
                            stream) == cudaSuccess);
    return block;
  }
  Floats read(const void* block, std::size_t count) {
    Floats values(count);
    REQUIRE(cudaMemcpyAsync(values.data(), block, count * sizeof(float), cudaMemcpyDefault,
                            stream) == cudaSuccess);
    return values;
  }
  // The result of a graph, whose last operand it is. What is refused is in `said`.
  Floats run(const OpGraph& graph, const std::vector<void*>& operands, std::size_t count) {
    std::string why_not;
    const auto plan = CudnnPlan::make(graph, kMostWorkspace, &why_not);
    REQUIRE_MESSAGE(plan != nullptr, why_not);
    CallFailure failure;
    plan->run(operands, workspace, {.native_stream = stream, .failure = &failure});
    said = failure.status().message;
    return read(operands.back(), count);
  }

  cudaStream_t stream = nullptr;
  std::vector<void*> blocks;
  void* workspace = nullptr;
  std::string said;
};

ConvShape small_conv() {
  return {.type = CUDNN_DATA_FLOAT,
          .window = {.rank = 2,
                     .kernel = {3, 2, 1},
                     .stride = {2, 1, 1},
                     .dilation = {1, 2, 1},
                     .pad_begin = {1, 0, 0},
                     .pad_end = {0, 1, 0}},
          .x = {2, 4, 6, 7},
          .w = {6, 2, 3, 2},
          .y = {2, 6, 3, 6}};
}

// y of small_conv() with a bias, by its definition.
Floats small_conv_result(const Floats& x, const Floats& w, const Floats& bias) {
  Floats y;
  for (int n = 0; n < 2; ++n) {
    for (int m = 0; m < 6; ++m) {
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 6; ++j) {
          double sum = static_cast<double>(bias[static_cast<std::size_t>(m)]);
          for (int c = 0; c < 2; ++c) {
            for (int a = 0; a < 3; ++a) {
              for (int b = 0; b < 2; ++b) {
                const int row = 2 * i + a - 1;
                const int column = j + 2 * b;
                if (row < 0 || row >= 6 || column >= 7) continue;
                const int of_x = ((n * 4 + m / 3 * 2 + c) * 6 + row) * 7 + column;
                const int of_w = ((m * 2 + c) * 3 + a) * 2 + b;
                sum += static_cast<double>(x[static_cast<std::size_t>(of_x)]) *
                       static_cast<double>(w[static_cast<std::size_t>(of_w)]);
              }
            }
          }
          y.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return y;
}

double distance(const Floats& a, const Floats& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(apart)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, apart);
  }
  return largest;
}

struct SimulatedConv : Simulated {
  const Floats x = numbers(2 * 4 * 6 * 7, 0.1F);
  const Floats w = numbers(6 * 2 * 3 * 2, 0.2F);
  const Floats bias = numbers(6, 0.3F);
  const Floats wanted = small_conv_result(x, w, bias);
  ConvShape shape = [] {
    ConvShape of = small_conv();
    of.has_bias = true;
    return of;
  }();

  std::vector<void*> operands() {
    return {operand(x), operand(w), operand(bias), allocated(wanted.size() * sizeof(float))};
  }
  double off(const ConvShape& of) {
    return distance(run(cuda::conv_graph(of), operands(), wanted.size()), wanted);
  }
};

TEST_CASE_FIXTURE(SimulatedConv,
                  "cudnn: a convolution in groups, with a stride, a dilation and pads") {
  CHECK(off(shape) < 1e-6);
  CHECK(said == "");
}

TEST_CASE_FIXTURE(SimulatedConv, "cudnn: a wrong field of a convolution gives other numbers") {
  SUBCASE("padding on the other side") {
    std::swap(shape.window.pad_begin, shape.window.pad_end);
    CHECK(off(shape) > 1e-2);
  }
  SUBCASE("no bias") {
    const std::vector<void*> all = operands();
    shape.has_bias = false;
    const Floats y = run(cuda::conv_graph(shape), {all[0], all[1], all[3]}, wanted.size());
    CHECK(distance(y, wanted) > 1e-2);
  }
}

TEST_CASE_FIXTURE(SimulatedConv,
                  "cudnn: sizes that do not fit are an error with the call and the reason") {
  shape.window.stride = {1, 1, 1};
  std::string why_not;
  std::string error;
  try {
    (void)CudnnPlan::make(cuda::conv_graph(shape), kMostWorkspace, &why_not);
  } catch (const std::runtime_error& thrown) {
    error = thrown.what();
  }
  CHECK(error.find("cudnnBackendFinalize of a descriptor (convolution op)") == 0);
  CHECK(error.find("the sizes of a convolution") != std::string::npos);
}

TEST_CASE_FIXTURE(SimulatedConv, "cudnn: operands that are not as the plan has them are refused") {
  std::vector<void*> all = operands();
  SUBCASE("not aligned") {
    all[1] = static_cast<float*>(all[1]) + 1;
    (void)run(cuda::conv_graph(shape), all, 1);
    CHECK(said.find("cudnnBackendExecute: status 2003") == 0);
    CHECK(said.find("on the compute stream") != std::string::npos);
    CHECK(said.find("f32[2,4,6,7]") != std::string::npos);
  }
  SUBCASE("missing") {
    all[1] = nullptr;
    (void)run(cuda::conv_graph(shape), all, 1);
    CHECK(said.find("cudnnBackendExecute: status 2000") == 0);
  }
  SUBCASE("too few") {
    all.erase(all.begin());
    (void)run(cuda::conv_graph(shape), all, 1);
    CHECK(!said.empty());
  }
}

TEST_CASE_FIXTURE(SimulatedConv, "cudnn: the plan is within its workspace, and used again") {
  const OpGraph graph = cuda::conv_graph(shape);
  CHECK(cuda::planned(graph, 16).why_not.find("its workspace is larger than 16 bytes") !=
        std::string::npos);
  const auto first = cuda::planned(graph, kMostWorkspace).plan;
  CHECK(first->workspace_bytes() > 0);
  CHECK(cuda::planned(cuda::conv_graph(shape), kMostWorkspace).plan == first);
  shape.window.dilation = {1, 1, 1};
  shape.y = {2, 6, 3, 7};
  CHECK(cuda::planned(cuda::conv_graph(shape), kMostWorkspace).plan != first);
}

TEST_CASE_FIXTURE(SimulatedConv, "cudnn: gradients of a convolution are its transposed maps") {
  // <dy, conv(x, w)> = <conv_grad_input(dy, w), x> = <conv_grad_weight(x, dy), w>.
  shape.has_bias = false;
  const Floats dy = numbers(wanted.size(), 0.4F);
  const auto product = [](const Floats& a, const Floats& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
  };
  const auto result = [&](const OpGraph& graph, const Floats& a, const Floats& b,
                          std::size_t count) {
    return run(graph, {operand(a), operand(b), allocated(count * sizeof(float))}, count);
  };
  const double of_y = product(result(cuda::conv_graph(shape), x, w, dy.size()), dy);
  CHECK(product(result(cuda::conv_grad_input_graph(shape), dy, w, x.size()), x) ==
        doctest::Approx(of_y).epsilon(1e-5));
  CHECK(product(result(cuda::conv_grad_weight_graph(shape), x, dy, w.size()), w) ==
        doctest::Approx(of_y).epsilon(1e-5));
}

// --- Attention -----------------------------------------------------------------------------------
// Queries, keys and elements of a head: kSize each; two heads of q share one of k and v.
constexpr std::size_t kSize = 8;
constexpr std::size_t kHeads = 4;
constexpr std::size_t kKvHeads = 2;

double rounded(float value) {
  return static_cast<double>(static_cast<float>(static_cast<BFloat16>(value)));
}

struct AttentionResult {
  Floats y;        // [tokens, heads, elements]
  Floats largest;  // [heads, tokens]
  Floats sums;     // of exp(score - largest), likewise
};

// By its definition, of rounded operands, causal.
AttentionResult attention_result(const Floats& q, const Floats& k, const Floats& v, double scale) {
  AttentionResult result{.y = Floats(q.size(), 0.0F), .largest = {}, .sums = {}};
  for (std::size_t head = 0; head < kHeads; ++head) {
    const std::size_t shared = head / (kHeads / kKvHeads);
    for (std::size_t query = 0; query < kSize; ++query) {
      const std::size_t of_q = (query * kHeads + head) * kSize;
      const auto of_k = [&](std::size_t key) { return (key * kKvHeads + shared) * kSize; };
      std::vector<double> scores(query + 1, 0.0);
      for (std::size_t key = 0; key <= query; ++key) {
        for (std::size_t d = 0; d < kSize; ++d) {
          scores[key] += scale * rounded(q[of_q + d]) * rounded(k[of_k(key) + d]);
        }
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0.0;
      for (const double score : scores) sum += std::exp(score - largest);
      for (std::size_t d = 0; d < kSize; ++d) {
        double value = 0.0;
        for (std::size_t key = 0; key <= query; ++key) {
          value += std::exp(scores[key] - largest) / sum * rounded(v[of_k(key) + d]);
        }
        result.y[of_q + d] = static_cast<float>(value);
      }
      result.largest.push_back(static_cast<float>(largest));
      result.sums.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

struct SimulatedAttention : Simulated {
  AttentionShape shape{.batch = 1,
                       .heads = kHeads,
                       .kv_heads = kKvHeads,
                       .tokens = kSize,
                       .keys = kSize,
                       .width = kSize,
                       .causal = true,
                       .scale = 0.7F};
  const Floats q = numbers(kSize * kHeads * kSize, 0.5F);
  const Floats k = numbers(kSize * kKvHeads * kSize, 0.6F);
  const Floats v = numbers(kSize * kKvHeads * kSize, 0.9F);
  const AttentionResult wanted = attention_result(q, k, v, 0.7);

  void* short_operand(const Floats& values) {
    const std::vector<BFloat16> short_values(values.begin(), values.end());
    void* block = allocated(values.size() * 2);
    REQUIRE(cudaMemcpyAsync(block, short_values.data(), values.size() * 2, cudaMemcpyDefault,
                            stream) == cudaSuccess);
    return block;
  }
  // How far y is from what it should be; what rows keep is read, too.
  double off(const Floats& first, const Floats& second, const Floats& third) {
    const std::size_t rows = kHeads * kSize;
    const std::vector<void*> operands = {short_operand(first), short_operand(second),
                                         short_operand(third), allocated(rows * 4),
                                         allocated(rows * 4),  allocated(wanted.y.size() * 2)};
    (void)run(cuda::attention_graph(shape), operands, 1);
    CHECK(said == "");
    largest = read(operands[3], rows);
    sums = read(operands[4], rows);
    std::vector<BFloat16> y(wanted.y.size());
    REQUIRE(cudaMemcpyAsync(y.data(), operands.back(), y.size() * 2, cudaMemcpyDefault, stream) ==
            cudaSuccess);
    return distance(Floats(y.begin(), y.end()), wanted.y);
  }
  Floats largest;
  Floats sums;
};

TEST_CASE_FIXTURE(SimulatedAttention, "cudnn: attention, and what a wrong field makes of it") {
  constexpr double kRounding = 0x1p-7;
  CHECK(off(q, k, v) < kRounding);
  CHECK(distance(largest, wanted.largest) < 1e-5);
  CHECK(distance(sums, wanted.sums) < 1e-5);
  SUBCASE("the scale") {
    shape.scale = 0.5F;
    CHECK(off(q, k, v) > 2 * kRounding);
  }
  SUBCASE("no mask") {
    shape.causal = false;
    CHECK(off(q, k, v) > 2 * kRounding);
  }
  SUBCASE("keys and values in each other's place") { CHECK(off(q, v, k) > 2 * kRounding); }
}

TEST_CASE_FIXTURE(Simulated, "cudnn: heads of another width, and f32, have no engine") {
  AttentionShape shape{.batch = 1,
                       .heads = 2,
                       .kv_heads = 1,
                       .tokens = 5,
                       .keys = 5,
                       .width = 12,
                       .packed = true,
                       .causal = true};
  std::string why_not;
  CHECK(CudnnPlan::make(cuda::attention_graph(shape), kMostWorkspace, &why_not) == nullptr);
  CHECK(why_not == "cuDNN has no engine for it: rows of heads are no multiple of 8");
  shape.width = 16;
  CHECK(CudnnPlan::make(cuda::attention_graph(shape), kMostWorkspace, &why_not) != nullptr);
  shape.type = CUDNN_DATA_FLOAT;
  CHECK(CudnnPlan::make(cuda::attention_graph(shape), kMostWorkspace, &why_not) == nullptr);
  CHECK(why_not.find("it multiplies in TF32") != std::string::npos);
}

}  // namespace
}  // namespace trainscope::test
