// The one function that the library of the CUDA back end exports.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "kernels/api/back_end.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/gemm/cublas_lt.h"
#include "kernels/cuda/gemm/lt_choices.h"
#include "kernels/cuda/plugin/cuda_kernels.h"
#ifdef TRAINSCOPE_HAS_CUDNN
#include "kernels/cuda/cudnn/cudnn.h"
#endif
#ifdef TRAINSCOPE_HAS_NCCL
#include "kernels/cuda/ranks/nccl_ranks.h"
#endif
#ifdef TRAINSCOPE_HAS_CUPTI
#include "kernels/cuda/trace/cupti_tracer.h"
#endif

namespace trainscope::cuda {
namespace {

void write_text(const std::string& text, char* to, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

// Null, with the reason, where there is no device. A file of choices that cannot be read is told
// here and not by the first matmul.
std::unique_ptr<CudaDevice> device_of(int number, std::string* why_not) {
  std::unique_ptr<CudaDevice> device;
  (void)lt_choices();
  *why_not = load_cublas_lt();
  if (why_not->empty()) device = CudaDevice::make(number, cuda_kernels(), why_not);
  if (device != nullptr && cublas_lt_handle(why_not) == nullptr) device.reset();
  return device;
}

// Nothing that is thrown leaves the library.
Device* make_device(int number, char* why, std::size_t why_bytes) noexcept {
  std::string why_not;
  try {
    std::unique_ptr<CudaDevice> device = device_of(number, &why_not);
    if (device != nullptr) return device.release();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  write_text(why_not, why, why_bytes);
  return nullptr;
}

// Null, with the reason, where there is no channel.
std::unique_ptr<Communicator> channel_of(Device& device, Communicator& hosts,
                                         std::string* why_not) {
#ifdef TRAINSCOPE_HAS_NCCL
  const DeviceStatus selected = static_cast<CudaDevice&>(device).select();
  *why_not = selected.message;
  return selected.done() ? NcclRanks::make(hosts, why_not) : nullptr;
#else
  (void)device;
  (void)hosts;
  *why_not = "this build of the CUDA back end has no NCCL";
  return nullptr;
#endif
}

Communicator* make_channel(Device& device, Communicator& hosts, char* why,
                           std::size_t why_bytes) noexcept {
  std::string why_not;
  try {
    std::unique_ptr<Communicator> channel = channel_of(device, hosts, &why_not);
    if (channel != nullptr) return channel.release();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  write_text(why_not, why, why_bytes);
  return nullptr;
}

// Null, with the reason, where there is no tracer.
DeviceTracer* tracer_of(Device& device, std::string* why_not) {
#ifdef TRAINSCOPE_HAS_CUPTI
  const DeviceStatus selected = static_cast<CudaDevice&>(device).select();
  *why_not = selected.message;
  return selected.done() ? CuptiTracer::get(why_not) : nullptr;
#else
  (void)device;
  *why_not = "this build of the CUDA back end has no CUPTI";
  return nullptr;
#endif
}

DeviceTracer* make_tracer(Device& device, char* why, std::size_t why_bytes) noexcept {
  std::string why_not;
  try {
    if (DeviceTracer* tracer = tracer_of(device, &why_not); tracer != nullptr) return tracer;
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  write_text(why_not, why, why_bytes);
  return nullptr;
}

void describe(const Device& device, char* text, std::size_t bytes) noexcept {
  std::string lines = static_cast<const CudaDevice&>(device).description() + "\ncuBLASLt " +
                      cublas_lt().version_text();
  if (const LtChoices* choices = lt_choices(); choices != nullptr) {
    lines += ", algorithms by time, kept in '" + choices->file() + "'";
  }
#ifdef TRAINSCOPE_HAS_CUDNN
  (void)static_cast<const CudaDevice&>(device).select();
  lines += "\n" + cudnn_description();
#endif
  write_text(lines, text, bytes);
}

constexpr BackEndLibrary kLibrary{.make_device = make_device,
                                  .describe = describe,
                                  .make_channel = make_channel,
                                  .make_tracer = make_tracer};

}  // namespace
}  // namespace trainscope::cuda

extern "C" __attribute__((visibility("default"))) const trainscope::BackEndLibrary*
trainscope_back_end() {
  return &trainscope::cuda::kLibrary;
}
