// A simulated CUDA runtime: what a GPU would do wrong with wrong calls goes wrong in it, too.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cuda/simulated/kernel_runner.h"

namespace {

// The one kernel of this program: to[i] = 2 from[i].
class Doubling final : public trainscope::simulated::RunnableKernel {
 public:
  std::span<const std::size_t> argument_bytes() const override { return kBytes; }
  void run(const trainscope::simulated::LaunchSizes& sizes, void* const* arguments,
           std::span<const trainscope::simulated::MemoryRange> /*memory*/) const override {
    float* to = *static_cast<float**>(arguments[0]);
    const float* from = *static_cast<const float**>(arguments[1]);
    for (unsigned i = 0; i < sizes.threads[0]; ++i) to[i] = 2.0F * from[i];
  }

 private:
  static constexpr std::size_t kBytes[] = {sizeof(float*), sizeof(const float*)};
};
const Doubling kDoubling;

}  // namespace

extern "C" const trainscope::simulated::RunnableKernel* trainscope_simulated_kernel(
    const char* name) {
  return std::strcmp(name, "doubling") == 0 ? &kDoubling : nullptr;
}
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*,
                                       dim3*, dim3*, int*);

namespace {

constexpr std::size_t kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(float);

// A `__global__` function as nvcc would have registered it.
const void* registered(const char* name) {
  static char functions[2];
  char* function = &functions[std::strcmp(name, "doubling") == 0 ? 0 : 1];
  __cudaRegisterFunction(nullptr, function, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  return function;
}

struct Setting {
  Setting() {
    REQUIRE(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&transfer, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    for (float** memory : {&from, &to}) {
      REQUIRE(cudaMalloc(reinterpret_cast<void**>(memory), kBytes) == cudaSuccess);
    }
    host.fill(3.0F);
  }
  ~Setting() {
    (void)cudaStreamDestroy(compute);
    (void)cudaStreamDestroy(transfer);
    (void)cudaEventDestroy(event);
    (void)cudaFree(from);
    (void)cudaFree(to);
    (void)cudaGetLastError();
  }
  cudaError_t copy(void* to_where, const void* from_where, cudaStream_t stream) {
    return cudaMemcpyAsync(to_where, from_where, kBytes, cudaMemcpyDefault, stream);
  }
  cudaError_t launch(const char* name = "doubling", unsigned threads = kCount) {
    void* arguments[] = {&to, &from};
    return cudaLaunchKernel(registered(name), dim3(1), dim3(threads), arguments, 0, compute);
  }
  // The first element of what the device holds.
  float read(const float* memory, cudaStream_t stream) {
    std::array<float, kCount> values = {};
    REQUIRE(copy(values.data(), memory, stream) == cudaSuccess);
    return values[0];
  }

  cudaStream_t compute = nullptr;
  cudaStream_t transfer = nullptr;
  cudaEvent_t event = nullptr;
  float* from = nullptr;
  float* to = nullptr;
  std::array<float, kCount> host = {};
};

TEST_CASE_FIXTURE(Setting, "a kernel that does not wait for a copy on another stream reads NaN") {
  REQUIRE(copy(from, host.data(), transfer) == cudaSuccess);
  REQUIRE(launch() == cudaSuccess);
  CHECK(std::isnan(read(to, compute)));
}

TEST_CASE_FIXTURE(Setting, "an event between the streams puts the copy first") {
  REQUIRE(copy(from, host.data(), transfer) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, transfer) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(compute, event, 0) == cudaSuccess);
  REQUIRE(launch() == cudaSuccess);
  CHECK(read(to, compute) == 6.0F);
}

TEST_CASE_FIXTURE(Setting, "arguments and pageable memory are those of the call") {
  REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
  host.fill(5.0F);
  REQUIRE(launch() == cudaSuccess);
  float* const kept = to;
  to = nullptr;
  CHECK(read(kept, compute) == 6.0F);
  to = kept;
}

TEST_CASE_FIXTURE(Setting, "pinned memory is read when the copy runs") {
  float* pinned = nullptr;
  REQUIRE(cudaHostAlloc(reinterpret_cast<void**>(&pinned), kBytes, 0) == cudaSuccess);
  std::memcpy(pinned, host.data(), kBytes);
  REQUIRE(copy(from, pinned, compute) == cudaSuccess);
  pinned[0] = 5.0F;  // too early: the copy has not run
  CHECK(read(from, compute) == 5.0F);
  CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE_FIXTURE(Setting, "the host cannot read the device's memory, and nobody beyond its end") {
  const auto dies_of = [](auto access) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);
      access();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  };
  CHECK(dies_of([&] { host[0] = *static_cast<volatile float*>(from); }) == SIGSEGV);
  CHECK(dies_of([&] {
          from += kCount;
          (void)launch();
          (void)cudaStreamSynchronize(compute);
        }) == SIGSEGV);
  CHECK(dies_of([&] {
          (void)launch();
          (void)cudaStreamSynchronize(compute);
        }) == 0);
}

TEST_CASE_FIXTURE(Setting, "what CUDA refuses is refused") {
  CHECK(cudaMemcpyAsync(from, host.data(), kBytes + 1, cudaMemcpyDefault, compute) ==
        cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemsetAsync(host.data(), 0, kBytes, compute) == cudaErrorInvalidValue);
  CHECK(launch("unknown") == cudaErrorInvalidDeviceFunction);
  CHECK(launch("doubling", 1025) == cudaErrorInvalidConfiguration);
  CHECK(launch("doubling", 0) == cudaErrorInvalidConfiguration);
  void* arguments[] = {&to, &from};
  const void* kernel = registered("doubling");
  const auto with_shared = [&](std::size_t bytes) {
    return cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, bytes, compute);
  };
  CHECK(with_shared(49 * 1024) == cudaErrorInvalidValue);
  const auto ask = [&](int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  CHECK(ask(228 * 1024) == cudaErrorInvalidValue);
  CHECK(ask(227 * 1024) == cudaSuccess);
  CHECK(with_shared(49 * 1024) == cudaSuccess);
  void* block = nullptr;
  CHECK(cudaMalloc(&block, std::size_t{9} << 30) == cudaErrorMemoryAllocation);
  CHECK(cudaSetDevice(8) == cudaErrorInvalidDevice);
}

TEST_CASE_FIXTURE(Setting, "a graph runs when it is launched, as often as it is") {
  REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, compute) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(transfer, event, 0) == cudaSuccess);
  REQUIRE(launch() == cudaSuccess);
  REQUIRE(cudaEventRecord(event, compute) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(transfer, event, 0) == cudaSuccess);
  REQUIRE(copy(from, to, transfer) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, transfer) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(compute, event, 0) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(compute, &graph) == cudaSuccess);
  cudaGraphExec_t ready = nullptr;
  REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(read(from, compute) == 3.0F);
  REQUIRE(cudaGraphLaunch(ready, compute) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(ready, compute) == cudaSuccess);
  CHECK(read(from, compute) == 12.0F);
  CHECK(cudaGraphExecDestroy(ready) == cudaSuccess);
}

TEST_CASE_FIXTURE(Setting, "a capture that is not whole is refused") {
  cudaGraph_t graph = nullptr;
  SUBCASE("a stream is not joined") {
    REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, compute) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(transfer, event, 0) == cudaSuccess);
    REQUIRE(copy(from, to, transfer) == cudaSuccess);
    CHECK(cudaStreamEndCapture(compute, &graph) == cudaErrorStreamCaptureUnjoined);
  }
  SUBCASE("the host waits") {
    REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(cudaStreamSynchronize(compute) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(compute, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("it waits for work from before it") {
    REQUIRE(cudaEventRecord(event, transfer) == cudaSuccess);
    REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(compute, event, 0) == cudaErrorStreamCaptureIsolation);
    CHECK(cudaStreamEndCapture(compute, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("nothing began") {
    CHECK(cudaStreamEndCapture(compute, &graph) == cudaErrorIllegalState);
  }
  CHECK(graph == nullptr);
  // The stream is as good as before.
  REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
  CHECK(read(from, compute) == 3.0F);
}

// One function fails while it lives.
class Refused {
 public:
  explicit Refused(const char* function) { ::setenv("TRAINSCOPE_SIMULATED_REFUSE", function, 1); }
  ~Refused() { ::unsetenv("TRAINSCOPE_SIMULATED_REFUSE"); }
  Refused(const Refused&) = delete;
  Refused& operator=(const Refused&) = delete;
};

TEST_CASE_FIXTURE(Setting, "what the environment names fails, and nothing else") {
  REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
  {
    const Refused refused("cudaLaunchKernel");
    CHECK(launch() == cudaErrorLaunchOutOfResources);
    CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
    CHECK(copy(to, from, compute) == cudaSuccess);
  }
  {
    const Refused refused("cudaMemcpyAsync");
    CHECK(copy(to, from, compute) == cudaErrorUnknown);
    CHECK(launch() == cudaSuccess);
  }
  CHECK(read(to, compute) == 6.0F);
}

// D [2, 3] = A [2, 4] B [4, 3], column-major.
struct SmallMatmul : Setting {
  SmallMatmul() {
    REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 2, 4, 2) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 4, 3, 4) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 2, 3, 2) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cudaMalloc(&workspace, 4096) == cudaSuccess);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
    REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
  }
  ~SmallMatmul() {
    (void)cublasLtMatmulDescDestroy(desc);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) (void)cublasLtMatrixLayoutDestroy(layout);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    (void)cudaStreamSynchronize(compute);
    (void)cudaFree(workspace);
  }
  cublasStatus_t choose(std::uint32_t alignment) {
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      (void)cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment,
                                                 sizeof alignment);
    }
    const std::uint64_t most = 4096;
    (void)cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &most, sizeof most);
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(nullptr, desc, a, b, d, d, preference, 1, &result,
                                          &found);
  }
  // A and B one behind the other in `from`, which begins `shift` elements later.
  cublasStatus_t multiply(std::size_t shift, std::size_t workspace_bytes = 4096) {
    const float alpha = 1.0F;
    const float beta = 0.0F;
    return cublasLtMatmul(nullptr, desc, &alpha, from + shift, a, from + shift + 8, b, &beta, to, d,
                          to, d, &result.algo, workspace, workspace_bytes, compute);
  }

  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t result = {};
  void* workspace = nullptr;
};

TEST_CASE_FIXTURE(SmallMatmul, "cublasLt computes what its descriptors say") {
  REQUIRE(choose(4) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(multiply(0) == CUBLAS_STATUS_SUCCESS);
  // 0 * 8 + 2 * 9 + 4 * 10 + 6 * 11.
  CHECK(read(to, compute) == 124.0F);
  {
    const Refused refused("cublasLtMatmul");
    CHECK(multiply(0) == CUBLAS_STATUS_EXECUTION_FAILED);
  }
  const cublasOperation_t transposed = CUBLAS_OP_T;
  REQUIRE(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed) == CUBLAS_STATUS_SUCCESS);
  CHECK(choose(4) == CUBLAS_STATUS_NOT_SUPPORTED);  // A^T is [4, 2]
}

TEST_CASE_FIXTURE(SmallMatmul, "in TF32 factors are rounded to 10 bits, of two to the even one") {
  const auto product_of = [&](float factor) {  // with 1
    host.fill(0.0F);
    host[0] = factor;
    host[8] = 1.0F;
    REQUIRE(copy(from, host.data(), compute) == cudaSuccess);
    REQUIRE(choose(4) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(multiply(0) == CUBLAS_STATUS_SUCCESS);
    return read(to, compute);
  };
  CHECK(product_of(1.0F + 0x1p-11F) == 1.0F + 0x1p-11F);
  REQUIRE(cublasLtMatmulDescDestroy(desc) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(product_of(1.0F + 0x1p-11F) == 1.0F);
  CHECK(product_of(1.0F + 0x1p-11F + 0x1p-23F) == 1.0F + 0x1p-10F);
  CHECK(product_of(-1.0F - 0x3p-11F) == -1.0F - 0x1p-9F);
  CHECK(product_of(2.0F - 0x1p-12F) == 2.0F);
  CHECK(product_of(0x1p-140F) == 0.0F);
  CHECK(std::isnan(product_of(NAN)));
}

TEST_CASE_FIXTURE(SmallMatmul, "an algorithm of 16 bytes takes no operand in between") {
  REQUIRE(choose(16) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(0) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(1) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(0, 128) == CUBLAS_STATUS_INVALID_VALUE);
  REQUIRE(choose(4) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(1) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE_FIXTURE(SmallMatmul, "a bias is added where the epilogue says so") {
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  const void* bias = from + 1;
  REQUIRE(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                         sizeof epilogue) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                         sizeof bias) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(choose(4) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(multiply(0) == CUBLAS_STATUS_SUCCESS);
  CHECK(read(to, compute) == 125.0F);
}

}  // namespace
