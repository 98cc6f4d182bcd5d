// Bytes a second by size: kernels that copy, add, read and write, the runtime's own copies, and
// copies between the host's memory, pinned or pageable, and the device's.
#include <chrono>
#include <cstring>

#include "bench/gpu/support.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::DeviceArray;
using trainscope::bench::event_times;
using trainscope::bench::Line;
using trainscope::bench::median;

constexpr std::size_t kMebi = std::size_t{1} << 20;
constexpr int kThreads = 256;

// Each thread has 4 loads of 16 bytes in flight; the tail is checked load by load.
template <class Body>
__device__ void for_each_vector(std::size_t vectors, const Body& body) {
  const std::size_t base = static_cast<std::size_t>(blockIdx.x) * kThreads * 4 + threadIdx.x;
#pragma unroll
  for (std::size_t k = 0; k < 4; ++k) {
    const std::size_t i = base + k * kThreads;
    if (i < vectors) body(i);
  }
}

__global__ void __launch_bounds__(kThreads) copy(float4* out, const float4* in, std::size_t n) {
  for_each_vector(n, [&](std::size_t i) { out[i] = in[i]; });
}

__global__ void __launch_bounds__(kThreads)
    triad(float4* out, const float4* a, const float4* b, float scale, std::size_t n) {
  for_each_vector(n, [&](std::size_t i) {
    const float4 x = a[i];
    const float4 y = b[i];
    out[i] = make_float4(fmaf(scale, y.x, x.x), fmaf(scale, y.y, x.y), fmaf(scale, y.z, x.z),
                         fmaf(scale, y.w, x.w));
  });
}

// The sum keeps the loads; it is written only where it is what no data gives.
__global__ void __launch_bounds__(kThreads) read(float* out, const float4* in, std::size_t n) {
  float sum = 0;
  for_each_vector(n, [&](std::size_t i) {
    const float4 x = in[i];
    sum += x.x + x.y + x.z + x.w;
  });
  if (sum == 1e30f) *out = sum;
}

__global__ void __launch_bounds__(kThreads) write(float4* out, float value, std::size_t n) {
  for_each_vector(n, [&](std::size_t i) { out[i] = make_float4(value, value, value, value); });
}

unsigned blocks_for(std::size_t vectors) {
  return static_cast<unsigned>((vectors + 4 * kThreads - 1) / (4 * kThreads));
}

// `moved`: bytes read and written by a run of work().
template <class Work>
void report(const char* name, std::size_t array_bytes, double moved, const Work& work) {
  const int repeats = array_bytes > 1024 * kMebi ? 7 : 21;
  const std::vector<double> times = event_times(work, repeats, 3);
  check_launch(name);
  const double best = *std::min_element(times.begin(), times.end());
  Line("bandwidth")
      .text("what", name)
      .count("array_bytes", static_cast<long long>(array_bytes))
      .number("ms", median(times))
      .number("ms_min", best)
      .number("gb_per_s", moved / median(times) / 1e6)
      .number("gb_per_s_max", moved / best / 1e6)
      .print();
}

void device_memory(std::size_t bytes, float* a, float* b, float* c) {
  const std::size_t n = bytes / sizeof(float4);
  auto* out = reinterpret_cast<float4*>(c);
  const auto* x = reinterpret_cast<const float4*>(a);
  const auto* y = reinterpret_cast<const float4*>(b);
  const unsigned blocks = blocks_for(n);
  const auto size = static_cast<double>(bytes);
  report("copy kernel", bytes, 2 * size, [&] { copy<<<blocks, kThreads>>>(out, x, n); });
  report("triad kernel", bytes, 3 * size, [&] { triad<<<blocks, kThreads>>>(out, x, y, 3.0f, n); });
  report("read kernel", bytes, size, [&] { read<<<blocks, kThreads>>>(c, x, n); });
  report("write kernel", bytes, size, [&] { write<<<blocks, kThreads>>>(out, 1.5f, n); });
  report("cudaMemcpyAsync within the device", bytes, 2 * size, [&] {
    check(cudaMemcpyAsync(c, a, bytes, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync");
  });
  report("cudaMemsetAsync", bytes, size,
         [&] { check(cudaMemsetAsync(c, 1, bytes, nullptr), "cudaMemsetAsync"); });
}

// By the host's clock: a copy of pageable memory returns when its pages have been staged.
double host_copy_ms(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  std::vector<double> times;
  for (int i = 0; i < 8; ++i) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto start = std::chrono::steady_clock::now();
    check(cudaMemcpyAsync(to, from, bytes, kind, nullptr), "cudaMemcpyAsync");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (i > 0) times.push_back(time.count());
  }
  return median(times);
}

void host_copies(const char* memory, char* host, char* device, std::size_t most) {
  for (std::size_t bytes = kMebi / 16; bytes <= most; bytes *= 4) {
    const double down = host_copy_ms(device, host, bytes, cudaMemcpyHostToDevice);
    const double up = host_copy_ms(host, device, bytes, cudaMemcpyDeviceToHost);
    Line("host_copy")
        .text("memory", memory)
        .count("bytes", static_cast<long long>(bytes))
        .number("to_device_ms", down)
        .number("to_host_ms", up)
        .number("to_device_gb_per_s", static_cast<double>(bytes) / down / 1e6)
        .number("to_host_gb_per_s", static_cast<double>(bytes) / up / 1e6)
        .print();
  }
}

}  // namespace

// bandwidth [LARGEST_MIB]: the largest array, 4096 where none is named.
int main(int argument_count, char** arguments) {
  const std::size_t largest =
      (argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 4096) * kMebi;
  {
    DeviceArray<float> a(largest / sizeof(float));
    DeviceArray<float> b(largest / sizeof(float));
    DeviceArray<float> c(largest / sizeof(float));
    a.randomize(1);
    b.randomize(2);
    for (std::size_t bytes = kMebi; bytes <= largest; bytes *= 2)
      device_memory(bytes, a.get(), b.get(), c.get());
  }
  const std::size_t most = std::min(largest, 1024 * kMebi);
  DeviceArray<char> device(most);
  char* pinned = nullptr;
  check(cudaMallocHost(&pinned, most), "cudaMallocHost");
  std::memset(pinned, 1, most);
  host_copies("pinned", pinned, device.get(), most);
  cudaFreeHost(pinned);
  std::vector<char> pageable(most, 1);
  host_copies("pageable", pageable.data(), device.get(), most);
  return 0;
}
