// Rates of matmuls through cublasLt at the shapes of the large workloads, in f32, tf32 and
// bf16, in each way that weights may lie, with the algorithms that the library offers for each.
#include <cuda_bf16.h>

#include <cstring>

#include "bench/gpu/blaslt.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::described;
using trainscope::bench::DeviceArray;
using trainscope::bench::event_times;
using trainscope::bench::kPrecisions;
using trainscope::bench::Line;
using trainscope::bench::Matmul;
using trainscope::bench::median;
using trainscope::bench::Offer;
using trainscope::bench::Plan;
using trainscope::bench::Precision;

constexpr int kOffered = 16;            // algorithms that are listed
constexpr std::size_t kTimed = 5;       // of which so many are timed
constexpr std::size_t kTimedLarge = 2;  // of matmuls of more than 10^12 operations in plain f32
constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

struct Weight {
  const char* workload;
  const char* name;
  long long rows;
  long long in;
  long long out;
};

constexpr Weight kWeights[] = {
#define WEIGHT(workload, name, rows, in, out) {workload, name, rows, in, out},
#include "bench/gpu/matrix_shapes.def"
#undef WEIGHT
};

struct Form {
  const char* name;
  Matmul matmul;
};

// Weights that lie [in, out], as ONNX' MatMul has them, or [out, in], as PyTorch does.
std::vector<Form> forms_of(const Weight& w) {
  return {
      {"forward, w [in, out]", {w.out, w.rows, w.in, false, false}},
      {"forward, w [out, in]", {w.out, w.rows, w.in, true, false}},
      {"by input, w [in, out]", {w.in, w.rows, w.out, true, false}},
      {"by input, w [out, in]", {w.in, w.rows, w.out, false, false}},
      {"by weight, w [in, out]", {w.out, w.in, w.rows, false, true}},
      {"by weight, w [out, in]", {w.in, w.out, w.rows, false, true}},
  };
}

// Operands of every matmul: as many elements as the largest has, at 4 bytes each.
struct Memory {
  Memory(std::size_t largest) : a(largest), b(largest), d(largest), workspace(kWorkspaceBytes) {}
  DeviceArray<float> a;
  DeviceArray<float> b;
  DeviceArray<float> d;
  DeviceArray<char> workspace;

  void randomize(const Precision& precision) {
    if (precision.type == CUDA_R_16BF) {
      trainscope::bench::fill_random<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(a.get()),
                                                    2 * a.count(), 1);
      trainscope::bench::fill_random<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(b.get()),
                                                    2 * b.count(), 2);
      trainscope::bench::check_launch("fill_random");
    } else {
      a.randomize(1);
      b.randomize(2);
    }
  }
};

// Zero where the library refuses to run what it offered.
double time_ms(cublasLtHandle_t library, const Plan& plan, const Offer& offer, const Memory& memory,
               double flops) {
  const int repeats = flops > 1e12 ? 3 : 7;
  const auto run = [&] {
    return plan.run(library, offer, memory.a.get(), memory.b.get(), memory.d.get(),
                    memory.workspace.get(), kWorkspaceBytes);
  };
  if (run() != CUBLAS_STATUS_SUCCESS) return 0;
  return median(event_times([&] { check(run(), "cublasLtMatmul"); }, repeats, 0));
}

void measure(cublasLtHandle_t library, const char* workload, const char* name, const char* form,
             const Matmul& matmul, const Precision& precision, const Memory& memory) {
  const Plan plan(matmul, precision);
  const auto offered = plan.algorithms(library, kOffered, kWorkspaceBytes);
  const double flops = 2.0 * static_cast<double>(matmul.m) * static_cast<double>(matmul.n) *
                       static_cast<double>(matmul.k) * matmul.batch;
  const bool large =
      flops > 1e12 && precision.compute == CUBLAS_COMPUTE_32F && precision.type == CUDA_R_32F;
  const std::size_t timed = large ? kTimedLarge : kTimed;
  double first = 0;
  double best = 0;
  std::string algorithms;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    algorithms += (i == 0 ? "" : ", ") + described(offered[i]);
    if (i < timed) {
      const double ms = time_ms(library, plan, offered[i], memory, flops);
      if (first == 0) first = ms;
      if (ms > 0) best = best == 0 ? ms : std::min(best, ms);
      char text[40];
      std::snprintf(text, sizeof text, ", \"ms\": %.6g", ms);
      algorithms += text;
    }
    algorithms += "}";
  }
  Line line("matmul");
  line.text("workload", workload).text("name", name).text("form", form);
  line.text("precision", precision.name);
  line.count("m", matmul.m).count("n", matmul.n).count("k", matmul.k);
  line.count("batch", matmul.batch);
  line.text("operations",
            std::string(matmul.transpose_a ? "T" : "N") + (matmul.transpose_b ? "T" : "N"));
  if (first > 0) {
    line.number("ms_first", first).number("ms_best", best);
    line.number("tflops_first", flops / first / 1e9).number("tflops_best", flops / best / 1e9);
  }
  line.raw("algorithms", "[" + algorithms + "]").print();
}

// Heads of attention as matmuls of a batch, as an engine without a fused kernel runs them.
void attention_matmuls(cublasLtHandle_t library, const Precision& precision, const Memory& memory) {
  struct Heads {
    const char* workload;
    int count;
    long long positions;
    long long width;
  };
  for (const Heads& heads : {Heads{"g1", 32 * 12, 1024, 64}, Heads{"g3", 128 * 16, 128, 64}}) {
    const long long t = heads.positions;
    const Matmul scores = {t, t, heads.width, true, false, heads.count};
    const Matmul values = {heads.width, t, t, false, false, heads.count};
    const Matmul by_keys = {heads.width, t, t, false, true, heads.count};
    measure(library, heads.workload, "attention", "scores", scores, precision, memory);
    measure(library, heads.workload, "attention", "values", values, precision, memory);
    measure(library, heads.workload, "attention", "by keys", by_keys, precision, memory);
  }
}

bool wanted(const char* list, const char* workload) {
  return list == nullptr || std::strstr(list, workload) != nullptr;
}

}  // namespace

// matmuls [WORKLOADS [SMALLER]]: "g1,g3" or all; SMALLER divides the rows, for a trial.
int main(int argument_count, char** arguments) {
  const char* workloads = argument_count > 1 ? arguments[1] : nullptr;
  const long long smaller = argument_count > 2 ? std::atoll(arguments[2]) : 1;
  std::size_t largest = std::size_t{32} * 12 * 1024 * 1024;
  for (const Weight& w : kWeights)
    largest = std::max(
        largest, static_cast<std::size_t>(std::max(w.rows * std::max(w.in, w.out), w.in * w.out)));
  check(cudaSetDevice(0), "cudaSetDevice");
  cublasLtHandle_t library = nullptr;
  check(cublasLtCreate(&library), "cublasLtCreate");
  Line("library").count("cublaslt", static_cast<long long>(cublasLtGetVersion())).print();
  Memory memory(largest);
  for (const Precision& precision : kPrecisions) {
    memory.randomize(precision);
    const Matmul square = {8192, 8192, 8192, true, false};
    measure(library, "roof", "8192 cubed", "w [out, in]", square, precision, memory);
    for (Weight w : kWeights) {
      if (!wanted(workloads, w.workload)) continue;
      w.rows = std::max(1LL, w.rows / smaller);
      for (const Form& form : forms_of(w))
        measure(library, w.workload, w.name, form.name, form.matmul, precision, memory);
    }
    attention_matmuls(library, precision, memory);
  }
  check(cublasLtDestroy(library), "cublasLtDestroy");
  return 0;
}
