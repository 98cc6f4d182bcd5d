// Algorithms take turns, so that a clock that changes meanwhile changes them all.
#include "kernels/cuda/gemm/lt_timing.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/gemm/cublas_lt.h"

namespace trainscope::cuda {
namespace {

constexpr int kRounds = 5;
constexpr double kClearlyLess = 0.98;  // of the first one's time
constexpr std::size_t kPieceElements = std::size_t{1} << 17;
constexpr std::size_t kLeastFlushed = std::size_t{1} << 20;
constexpr double kNever = std::numeric_limits<double>::infinity();

// A stream, two of its events and memory, given back at the end. What fails is noted in failed().
class Workbench {
 public:
  Workbench() {
    take(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) take(cudaEventCreate(&event));
  }
  ~Workbench() {
    if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
    for (void* block : blocks_) (void)cudaFree(block);
    for (cudaEvent_t event : events_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
    if (failed_) (void)cudaGetLastError();
  }
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  cudaStream_t stream() const { return stream_; }
  bool failed() const { return failed_; }

  std::byte* allocate(std::size_t bytes) {
    void* block = nullptr;
    if (bytes == 0 || failed_) return nullptr;
    take(cudaMalloc(&block, bytes));
    if (block != nullptr) blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

  // Memory with the piece, over and over.
  std::byte* filled(std::size_t bytes, std::span<const std::byte> piece) {
    std::byte* block = allocate(bytes);
    for (std::size_t at = 0; at < bytes && !failed_; at += piece.size()) {
      take(cudaMemcpyAsync(block + at, piece.data(), std::min(piece.size(), bytes - at),
                           cudaMemcpyDefault, stream_));
    }
    return block;
  }

  void overwrite(std::byte* block, std::size_t bytes) {
    if (!failed_) take(cudaMemsetAsync(block, 0, bytes, stream_));
  }

  // Of what `run` gives the stream.
  template <typename Run>
  double seconds_of(const Run& run) {
    if (failed_) return kNever;
    take(cudaEventRecord(events_[0], stream_));
    const bool ran = run();
    take(cudaEventRecord(events_[1], stream_));
    take(cudaStreamSynchronize(stream_));
    float milliseconds = 0.0F;
    if (!failed_) take(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return ran && !failed_ ? static_cast<double>(milliseconds) * 1e-3 : kNever;
  }

 private:
  void take(cudaError_t error) { failed_ = failed_ || error != cudaSuccess; }

  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, 2> events_ = {};
  std::vector<void*> blocks_;
  bool failed_ = false;
};

template <typename T>
std::vector<std::byte> random_elements() {
  std::vector<std::byte> bytes(kPieceElements * sizeof(T));
  T* elements = reinterpret_cast<T*>(bytes.data());
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kPieceElements; ++i) {
    // Knuth's constants for 64 bits ("The Art of Computer Programming", volume 2).
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    elements[i] = static_cast<T>(static_cast<float>(state >> 40) * 0x1p-23F - 1.0F);
  }
  return bytes;
}

// Numbers of [-1, 1).
std::vector<std::byte> random_piece(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return random_elements<double>();
    case DType::kBF16:
      return random_elements<BFloat16>();
    case DType::kF16:
      return random_elements<Float16>();
    default:
      return random_elements<float>();
  }
}

std::size_t flushed_bytes() {
  int device = 0;
  cudaDeviceProp properties = {};
  if (cudaGetDevice(&device) != cudaSuccess) return kLeastFlushed;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return kLeastFlushed;
  return std::max(kLeastFlushed, 2 * static_cast<std::size_t>(std::max(0, properties.l2CacheSize)));
}

}  // namespace

std::vector<double> lt_seconds(const LtTimedMatmul& matmul,
                               std::span<const cublasLtMatmulHeuristicResult_t> algorithms) {
  const CublasLt& lt = cublas_lt();
  const std::vector<std::byte> factors = random_piece(matmul.dtype);
  const std::vector<std::byte> results = random_piece(matmul.result);
  std::size_t workspace_bytes = 0;
  for (const auto& each : algorithms)
    workspace_bytes = std::max(workspace_bytes, each.workspaceSize);
  const std::size_t cache_bytes = flushed_bytes();

  Workbench bench;
  std::byte* a = bench.filled(matmul.a_bytes, factors);
  std::byte* b = bench.filled(matmul.b_bytes, factors);
  std::byte* d = bench.filled(matmul.d_bytes, results);
  std::byte* bias = bench.filled(matmul.bias_bytes, results);
  std::byte* workspace = bench.allocate(workspace_bytes);
  std::byte* cache = bench.allocate(cache_bytes);
  if (bias != nullptr && lt.desc_set(matmul.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                     sizeof bias) != CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  const bool f64 = matmul.dtype == DType::kF64;
  const std::array<double, 2> scales64 = {1.0, matmul.beta};
  const std::array<float, 2> scales32 = {1.0F, static_cast<float>(matmul.beta)};
  const auto scale = [&](std::size_t i) {
    return f64 ? static_cast<const void*>(&scales64[i]) : &scales32[i];
  };
  std::vector<std::vector<double>> rounds(algorithms.size());
  for (int round = -1; round < kRounds; ++round) {  // the first loads the kernel's code
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      bench.overwrite(cache, cache_bytes);
      const double seconds = bench.seconds_of([&] {
        return lt.matmul(matmul.handle, matmul.desc, scale(0), a, matmul.a, b, matmul.b, scale(1),
                         d, matmul.d, d, matmul.d, &algorithms[i].algo, workspace, workspace_bytes,
                         bench.stream()) == CUBLAS_STATUS_SUCCESS;
      });
      if (round >= 0) rounds[i].push_back(seconds);
    }
  }
  if (bench.failed()) return {};
  std::vector<double> medians;
  for (std::vector<double>& of_one : rounds) {
    std::ranges::sort(of_one);
    medians.push_back(of_one[kRounds / 2]);
  }
  return medians;
}

std::size_t fastest_of(std::span<const double> seconds) {
  const auto least = std::ranges::min_element(seconds);
  const bool is_clear = least != seconds.end() && !(*least > kClearlyLess * seconds.front());
  return is_clear ? static_cast<std::size_t>(least - seconds.begin()) : 0;
}

}  // namespace trainscope::cuda
