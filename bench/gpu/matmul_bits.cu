// Bits of the library's matmuls: whether they are the same from run to run and in a larger
// batch, how f32 sums run over k, how tf32 rounds its operands, which GELU an epilogue has.
#include <cuda_bf16.h>

#include <cmath>
#include <cstring>

#include "bench/gpu/blaslt.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::described;
using trainscope::bench::DeviceArray;
using trainscope::bench::kPrecisions;
using trainscope::bench::Line;
using trainscope::bench::Matmul;
using trainscope::bench::Offer;
using trainscope::bench::Plan;
using trainscope::bench::Precision;
using trainscope::bench::random_number;

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

struct Operands {
  Operands(const Matmul& p)
      : a(elements(p.m, p.k)),
        b(elements(p.k, p.n)),
        d(elements(p.m, p.n)),
        workspace(kWorkspaceBytes) {
    a.randomize(1);
    b.randomize(2);
  }
  static std::size_t elements(long long rows, long long columns) {
    return static_cast<std::size_t>(rows * columns);
  }
  DeviceArray<float> a;
  DeviceArray<float> b;
  DeviceArray<float> d;
  DeviceArray<char> workspace;
};

// Empty where the library refuses to run what it offered.
std::vector<float> result(cublasLtHandle_t library, const Plan& plan, const Offer& offer,
                          const Operands& operands) {
  check(cudaMemset(operands.d.get(), 0xff, operands.d.count() * sizeof(float)), "cudaMemset");
  const cublasStatus_t status =
      plan.run(library, offer, operands.a.get(), operands.b.get(), operands.d.get(),
               operands.workspace.get(), kWorkspaceBytes);
  if (status != CUBLAS_STATUS_SUCCESS) return {};
  return operands.d.host();
}

// Same bits: how many of 10 runs of the first algorithm agree with its first run; and whether those
// that are offered after it give the same.
void repeated(cublasLtHandle_t library, const Precision& precision, const Matmul& matmul) {
  const Plan plan(matmul, precision);
  const Operands operands(matmul);
  const auto offered = plan.algorithms(library, 8, kWorkspaceBytes);
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const std::uint64_t first = hash_of(result(library, plan, offered[i], operands));
    int same = 1;
    for (int run = 1; run < 10; ++run)
      same += hash_of(result(library, plan, offered[i], operands)) == first ? 1 : 0;
    Line("same_bits")
        .text("precision", precision.name)
        .count("m", matmul.m)
        .count("n", matmul.n)
        .count("k", matmul.k)
        .text("operations",
              std::string(matmul.transpose_a ? "T" : "N") + (matmul.transpose_b ? "T" : "N"))
        .count("of_10_runs", same)
        .bits("hash", first)
        .raw("algorithm", described(offered[i]) + "}")
        .print();
  }
}

// Sums over k by fused multiply-add, from element 0 on, in `parts` chains that are added at the
// end; element of chain: k % parts (interleaved) or k / (length of a part).
enum class Parting { kInterleaved, kBlocks };

float chained(const std::vector<float>& x, const std::vector<float>& w, int parts,
              Parting parting) {
  std::vector<float> sums(static_cast<std::size_t>(parts), 0.0f);
  const std::size_t length = (x.size() + sums.size() - 1) / sums.size();
  for (std::size_t k = 0; k < x.size(); ++k) {
    float& sum = sums[parting == Parting::kInterleaved ? k % sums.size() : k / length];
    sum = std::fma(x[k], w[k], sum);
  }
  float total = sums[0];
  for (std::size_t i = 1; i < sums.size(); ++i) total += sums[i];
  return total;
}

// Elements [i, j] with their bits, [[i, j, "bits"], ..]: in which order a split k is summed can be
// told from them elsewhere, as A and B are random_number(1, ..) and (2, ..).
std::string sampled(const Matmul& matmul, const std::vector<float>& d) {
  std::string samples;
  for (long long element = 0; element < 48; ++element) {
    const long long i = element * 7919 % matmul.m;
    const long long j = element * 104729 % matmul.n;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &d[static_cast<std::size_t>(j * matmul.m + i)], 4);
    char text[64];
    std::snprintf(text, sizeof text, "%s[%lld, %lld, \"%08x\"]", element == 0 ? "" : ", ", i, j,
                  bits);
    samples += text;
  }
  return samples;
}

// Of 2,048 elements, how many have the bits of each way to sum.
void order_of_sums(cublasLtHandle_t library, const Matmul& matmul) {
  const Plan plan(matmul, kPrecisions[0]);
  const Operands operands(matmul);
  const auto offered = plan.algorithms(library, 8, kWorkspaceBytes);
  const std::vector<float> a = operands.a.host();
  const std::vector<float> b = operands.b.host();
  for (const Offer& offer : offered) {
    const std::vector<float> d = result(library, plan, offer, operands);
    if (d.empty()) continue;
    std::string counts;
    for (const Parting parting : {Parting::kInterleaved, Parting::kBlocks}) {
      for (const int parts : {1, 2, 4, 8}) {
        int equal = 0;
        for (long long element = 0; element < 2048; ++element) {
          const long long i = element * 7919 % matmul.m;
          const long long j = element * 104729 % matmul.n;
          std::vector<float> x;
          std::vector<float> w;
          for (long long k = 0; k < matmul.k; ++k) {
            x.push_back(a[static_cast<std::size_t>(matmul.transpose_a ? i * matmul.k + k
                                                                      : k * matmul.m + i)]);
            w.push_back(b[static_cast<std::size_t>(matmul.transpose_b ? k * matmul.n + j
                                                                      : j * matmul.k + k)]);
          }
          const float sum = chained(x, w, parts, parting);
          equal += sum == d[static_cast<std::size_t>(j * matmul.m + i)] ? 1 : 0;
        }
        counts += (counts.empty() ? "" : ", ") + std::string("\"") +
                  (parting == Parting::kBlocks ? "blocks " : "interleaved ") +
                  std::to_string(parts) + "\": " + std::to_string(equal);
      }
    }
    Line("order_of_sums")
        .count("m", matmul.m)
        .count("n", matmul.n)
        .count("k", matmul.k)
        .text("operations",
              std::string(matmul.transpose_a ? "T" : "N") + (matmul.transpose_b ? "T" : "N"))
        .raw("equal_of_2048", "{" + counts + "}")
        .raw("algorithm", described(offer) + "}")
        .raw("samples", "[" + sampled(matmul, d) + "]")
        .print();
  }
}

// Does column j of a matmul of many columns have the bits that it has in a matmul of few?
void larger_batch(cublasLtHandle_t library, const Precision& precision) {
  std::uint64_t first = 0;
  for (const long long n : {64LL, 128LL, 256LL, 1024LL, 4096LL}) {
    const Matmul matmul = {768, n, 768, false, false};
    const Plan plan(matmul, precision);
    const Operands operands(matmul);
    const auto offered = plan.algorithms(library, 1, kWorkspaceBytes);
    if (offered.empty()) continue;
    std::vector<float> d = result(library, plan, offered[0], operands);
    d.resize(static_cast<std::size_t>(768 * 64));  // the columns that all of them have
    const std::uint64_t hash = hash_of(d);
    if (n == 64) first = hash;
    Line("larger_batch")
        .text("precision", precision.name)
        .count("n", n)
        .count("same_as_64", hash == first ? 1 : 0)
        .raw("algorithm", described(offered[0]) + "}")
        .print();
  }
}

// 1 times a number whose fraction ends below tf32's 10 bits, elsewhere zeros.
void rounding_of_tf32(cublasLtHandle_t library) {
  const Matmul matmul = {64, 64, 64, false, false};
  const Plan plan(matmul, kPrecisions[1]);
  const Operands operands(matmul);
  const auto offered = plan.algorithms(library, 1, kWorkspaceBytes);
  if (offered.empty()) return;
  std::vector<float> a(64 * 64, 0.0f);
  std::vector<float> b(64 * 64, 0.0f);
  const std::vector<float> fractions = {0.25f, 0.5f, 0.75f, 1.0f, 1.25f, 1.5f, 1.75f, 2.5f, -0.5f};
  for (std::size_t i = 0; i < 64; ++i) {
    a[i * 64 + i] = 1.0f + std::ldexp(fractions[i % fractions.size()], -10);
    b[i * 64 + i] = 1.0f;
  }
  check(cudaMemcpy(operands.a.get(), a.data(), a.size() * 4, cudaMemcpyHostToDevice), "a");
  check(cudaMemcpy(operands.b.get(), b.data(), b.size() * 4, cudaMemcpyHostToDevice), "b");
  const std::vector<float> d = result(library, plan, offered[0], operands);
  if (d.empty()) return;
  for (std::size_t i = 0; i < fractions.size(); ++i)
    Line("tf32_rounding")
        .number("units_of_its_last_place", fractions[i])
        .number("units_that_are_left", std::ldexp(d[i * 64 + i] - 1.0f, 10))
        .print();
}

// Largest distance of the GELU epilogue from its forms by erf and by tanh; f32 and bf16.
void form_of_gelu(cublasLtHandle_t library, const Precision& precision) {
  Matmul matmul = {64, 64, 64, false, false};
  matmul.epilogue = CUBLASLT_EPILOGUE_GELU;
  const Plan plan(matmul, precision);
  const auto offered = plan.algorithms(library, 1, kWorkspaceBytes);
  Line line("gelu_epilogue");
  line.text("precision", precision.name)
      .count("algorithms", static_cast<long long>(offered.size()));
  if (!offered.empty() && precision.type == CUDA_R_32F) {
    const Operands operands(matmul);
    std::vector<float> a(64 * 64, 0.0f);
    std::vector<float> b(64 * 64, 0.0f);
    for (std::size_t i = 0; i < 64; ++i) a[i * 64 + i] = 1.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 4 * random_number(5, i);
    check(cudaMemcpy(operands.a.get(), a.data(), a.size() * 4, cudaMemcpyHostToDevice), "a");
    check(cudaMemcpy(operands.b.get(), b.data(), b.size() * 4, cudaMemcpyHostToDevice), "b");
    const std::vector<float> d = result(library, plan, offered[0], operands);
    double from_erf = 0;
    double from_tanh = 0;
    line.count("elements", static_cast<long long>(d.size()));
    for (std::size_t i = 0; i < d.size(); ++i) {
      const double x = b[i];
      const double by_erf = 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      const double inner = std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
      const double by_tanh = 0.5 * x * (1 + std::tanh(inner));
      from_erf = std::max(from_erf, std::fabs(d[i] - by_erf));
      from_tanh = std::max(from_tanh, std::fabs(d[i] - by_tanh));
    }
    line.number("from_erf", from_erf).number("from_tanh", from_tanh);
  }
  line.print();
}

// How many algorithms each epilogue has at the shapes of an MLP of g1.
void epilogues(cublasLtHandle_t library, const Precision& precision) {
  const std::pair<const char*, cublasLtEpilogue_t> all[] = {
      {"BIAS", CUBLASLT_EPILOGUE_BIAS},
      {"GELU_BIAS", CUBLASLT_EPILOGUE_GELU_BIAS},
      {"GELU_AUX_BIAS", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
      {"DGELU", CUBLASLT_EPILOGUE_DGELU},
      {"DGELU_BGRAD", CUBLASLT_EPILOGUE_DGELU_BGRAD},
      {"BGRADA", CUBLASLT_EPILOGUE_BGRADA},
      {"BGRADB", CUBLASLT_EPILOGUE_BGRADB},
      {"RELU_AUX_BIAS", CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
      {"DRELU_BGRAD", CUBLASLT_EPILOGUE_DRELU_BGRAD},
  };
  for (const auto& [name, epilogue] : all) {
    for (const bool transpose_a : {false, true}) {
      Matmul matmul = {3072, 32768, 768, transpose_a, false};
      matmul.epilogue = epilogue;
      Plan plan(matmul, precision);
      const std::int64_t leading = 3072;
      plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading);
      const auto offered = plan.algorithms(library, 8, kWorkspaceBytes);
      Line line("epilogue");
      line.text("name", name).text("precision", precision.name);
      line.text("operations", transpose_a ? "TN" : "NN");
      line.count("algorithms", static_cast<long long>(offered.size()));
      if (!offered.empty()) line.raw("first", described(offered[0]) + "}");
      line.print();
    }
  }
}

}  // namespace

int main() {
  check(cudaSetDevice(0), "cudaSetDevice");
  cublasLtHandle_t library = nullptr;
  check(cublasLtCreate(&library), "cublasLtCreate");
  for (const Precision& precision : {kPrecisions[0], kPrecisions[1]}) {
    repeated(library, precision, {768, 2048, 768, false, false});
    repeated(library, precision, {768, 768, 32768, false, true});
    larger_batch(library, precision);
  }
  order_of_sums(library, {768, 1024, 96, false, false});
  order_of_sums(library, {768, 1024, 768, false, false});
  order_of_sums(library, {768, 1024, 768, true, false});
  order_of_sums(library, {768, 768, 2048, false, true});
  rounding_of_tf32(library);
  for (const Precision& precision : kPrecisions) {
    form_of_gelu(library, precision);
    epilogues(library, precision);
  }
  check(cublasLtDestroy(library), "cublasLtDestroy");
  return 0;
}
