// The device interface by the CUDA runtime: memory, copies, kernels.
#include "kernels/cuda/device/cuda_device.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/cuda/device/cuda_error.h"
#include "kernels/cuda/device/image_probe.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kPageBytes = 4096;       // the alignment of what allocate() gives
constexpr std::int64_t kAlignmentBytes = 256;  // of buffers: as cudaMalloc's, for any vector
constexpr int kTimedRounds = 5;

std::string of_bytes(std::string_view what, std::size_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

// "13.0" of 13000, as runtime and driver count.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string missing_number(int number, int count) {
  if (count == 0) return "CUDA finds no device";
  return "there is no CUDA device " + std::to_string(number) + ": CUDA finds " +
         std::to_string(count);
}

// Of the current device's memory, by any process, and in all.
DeviceStatus used_bytes(std::size_t* used, std::size_t* total) {
  std::size_t free = 0;
  const cudaError_t error = cudaMemGetInfo(&free, total);
  if (error == cudaSuccess) *used = *total - free;
  return status_of(error, "cudaMemGetInfo");
}

}  // namespace

std::unique_ptr<CudaDevice> CudaDevice::make(int number, KernelTable kernels,
                                             std::string* why_not) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess && error != cudaErrorNoDevice) {
    *why_not = status_of(error, "CUDA does not start: cudaGetDeviceCount").message;
    return nullptr;
  }
  if (error != cudaSuccess) count = 0;
  if (number < 0 || number >= count) {
    *why_not = missing_number(number, count);
    return nullptr;
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(number, std::move(kernels)));
  const DeviceStatus status = device->start();
  if (status.done()) return device;
  *why_not = status.message;
  return nullptr;
}

CudaDevice::CudaDevice(int number, KernelTable kernels)
    : number_(number),
      name_("cuda:" + std::to_string(number)),
      kernels_(std::move(kernels)),
      facts_{.name = name_,
             .device = {.name = "device memory", .alignment_bytes = kAlignmentBytes},
             .host = {.name = "pinned host memory", .alignment_bytes = kAlignmentBytes},
             .replays = true} {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  launches_wait_ = blocking != nullptr && std::string_view(blocking) == "1";
  facts_.replays = !launches_wait_;
}

DeviceStatus CudaDevice::start() {
  if (DeviceStatus status = select(); !status.done()) return status;
  cudaError_t error = cudaGetDeviceProperties(&properties_, number_);
  if (error != cudaSuccess) return status_of(error, "cudaGetDeviceProperties");
  if (const cudaError_t image = probe_image(); image != cudaSuccess) {
    return status_of(image, "this back end has no code for " + std::string(properties_.name) +
                                " (compute capability " + std::to_string(properties_.major) + "." +
                                std::to_string(properties_.minor) + ")");
  }
  for (StreamEvents& events : events_) {
    cudaStream_t stream = nullptr;
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return status_of(error, "cudaStreamCreateWithFlags");
    if (DeviceStatus status = events.start(stream); !status.done()) return status;
  }
  error = cudaEventCreateWithFlags(&meeting_, cudaEventDisableTiming);
  for (cudaEvent_t& event : timing_) {
    if (error == cudaSuccess) error = cudaEventCreate(&event);
  }
  if (error != cudaSuccess) return status_of(error, "cudaEventCreate");
  std::size_t total = 0;
  return used_bytes(&used_at_start_, &total);
}

// Failures are nobody's any more: they were reported to whoever waited.
CudaDevice::~CudaDevice() {
  (void)select();
  for (StreamEvents& events : events_) {
    if (events.stream() != nullptr) (void)cudaStreamDestroy(events.stream());
  }
  for (cudaEvent_t event : {meeting_, timing_[0], timing_[1]}) {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
}

std::string CudaDevice::description() const {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  return std::string(properties_.name) + ", compute capability " +
         std::to_string(properties_.major) + "." + std::to_string(properties_.minor) + ", " +
         std::to_string(properties_.multiProcessorCount) + " multiprocessors, " +
         std::to_string(properties_.totalGlobalMem) + " bytes; the driver knows CUDA " +
         version_text(driver) + ", runtime " + version_text(runtime);
}

DeviceStatus CudaDevice::select() const {
  return status_of(cudaSetDevice(number_), "cudaSetDevice to " + name_);
}

DeviceStatus CudaDevice::start_threads(int /*threads*/) { return {}; }

DeviceStatus CudaDevice::allocate(Space space, std::size_t bytes, std::byte** memory) {
  if (DeviceStatus status = select(); !status.done()) return status;
  const std::size_t with_rest = std::max<std::size_t>(bytes, 1) + kPageBytes;
  const bool on_device = space == Space::kDevice;
  void* block = nullptr;
  const cudaError_t error = on_device ? cudaMalloc(&block, with_rest)
                                      : cudaHostAlloc(&block, with_rest, cudaHostAllocDefault);
  if (error != cudaSuccess) {
    return status_of(error, of_bytes(on_device ? "cudaMalloc" : "cudaHostAlloc", with_rest));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  auto* given = static_cast<std::byte*>(block) + (kPageBytes - address % kPageBytes) % kPageBytes;
  DeviceStatus status;
  if (on_device) {
    status = status_of(cudaMemsetAsync(block, 0, with_rest, native(kComputeStream)),
                       of_bytes("cudaMemsetAsync", with_rest), kComputeStream);
    if (status.done()) status = drain(kComputeStream);
  } else {
    std::memset(block, 0, with_rest);
  }
  blocks_.emplace(given, Block{.address = block, .bytes = with_rest});
  if (on_device) device_bytes_ += with_rest;
  *memory = given;
  if (!status.done()) release(space, given, bytes);
  return status;
}

void CudaDevice::release(Space space, std::byte* memory, std::size_t /*bytes*/) {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return;
  (void)select();
  (void)drain_all();
  const auto [address, bytes] = found->second;
  const bool on_device = space == Space::kDevice;
  (void)(on_device ? cudaFree(address) : cudaFreeHost(address));
  if (on_device) device_bytes_ -= bytes;
  blocks_.erase(found);
}

DeviceStatus CudaDevice::memory(DeviceMemory* memory) {
  if (DeviceStatus status = select(); !status.done()) return status;
  std::size_t used = 0;
  std::size_t total = 0;
  if (DeviceStatus status = used_bytes(&used, &total); !status.done()) return status;
  const auto driver = static_cast<std::int64_t>(used_at_start_);
  const auto allocated = static_cast<std::int64_t>(device_bytes_);
  *memory = {.total = static_cast<std::int64_t>(total),
             .allocated = allocated,
             .driver = driver,
             .libraries = static_cast<std::int64_t>(used) - driver - allocated};
  return {};
}

// The runtime tells the program's own memory from the device's by the address. A copy from pageable
// memory is staged: when it returns its source may change; one to pageable memory is done then.
DeviceStatus CudaDevice::copy(Stream stream, std::byte* to, const std::byte* from,
                              std::size_t bytes) {
  if (bytes == 0) return {};
  if (DeviceStatus status = select(); !status.done()) return status;
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream));
  if (error == cudaSuccess) return {};
  return status_of(error, of_bytes("cudaMemcpyAsync", bytes), stream);
}

DeviceStatus CudaDevice::fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) {
  if (bytes == 0) return {};
  if (DeviceStatus status = select(); !status.done()) return status;
  const cudaError_t error = cudaMemsetAsync(to, std::to_integer<int>(value), bytes, native(stream));
  if (error == cudaSuccess) return {};
  return status_of(error, of_bytes("cudaMemsetAsync", bytes), stream);
}

DeviceStatus CudaDevice::launch(Stream stream, const Kernel& kernel, const RunArgs& args) {
  if (DeviceStatus status = select(); !status.done()) return status;
  CallFailure failure;
  RunArgs heard = args;
  heard.call = {.stream = stream, .native_stream = native(stream), .failure = &failure};
  kernel.run(heard);
  if (!failure.status().done() || !launches_wait_ || capturing_) return failure.status();
  return drain(stream);
}

DeviceStatus CudaDevice::time_once(const Kernel& kernel, const RunArgs& args, double* seconds) {
  const cudaStream_t stream = native(kComputeStream);
  DeviceStatus status = status_of(cudaEventRecord(timing_[0], stream), "cudaEventRecord");
  if (status.done()) status = launch(kComputeStream, kernel, args);
  if (!status.done()) return status;
  status = status_of(cudaEventRecord(timing_[1], stream), "cudaEventRecord");
  if (status.done()) status = drain(kComputeStream);
  float milliseconds = 0.0F;
  if (status.done()) {
    status = status_of(cudaEventElapsedTime(&milliseconds, timing_[0], timing_[1]),
                       "cudaEventElapsedTime");
  }
  *seconds = static_cast<double>(milliseconds) * 1e-3;
  return status;
}

// The first run loads the kernel's code and is not counted.
DeviceStatus CudaDevice::time(const Kernel& kernel, const RunArgs& args, double* seconds) {
  DeviceStatus status = drain_all();
  double least = 0.0;
  for (int round = -1; round < kTimedRounds && status.done(); ++round) {
    double took = 0.0;
    status = time_once(kernel, args, &took);
    if (round >= 0) least = round == 0 ? took : std::min(least, took);
  }
  *seconds = least;
  return status;
}

}  // namespace trainscope::cuda
