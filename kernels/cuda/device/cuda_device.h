// An NVIDIA GPU as a device: memory of the CUDA runtime, a stream of kernels and one of transfers,
// events by ticket, lists of work as CUDA graphs.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>

#include "kernels/api/device.h"
#include "kernels/cuda/device/stream_events.h"

namespace trainscope::cuda {

class CudaDevice final : public Device {
 public:
  // Null, with the reason in `why_not`, where there is no such device, or none that this library
  // holds code for.
  static std::unique_ptr<CudaDevice> make(int number, KernelTable kernels, std::string* why_not);
  ~CudaDevice() override;

  const DeviceFacts& facts() const override { return facts_; }
  const KernelTable& kernels() const override { return kernels_; }
  // The GPU's name, memory and compute capability, the versions of driver and runtime.
  std::string description() const;
  // Makes it the runtime's current device, which is a thread's own; any thread may call.
  DeviceStatus select() const;

  // No call of this device is divided among threads of the host.
  DeviceStatus start_threads(int threads) override;
  Fork fork() const override { return nullptr; }
  DeviceStatus allocate(Space space, std::size_t bytes, std::byte** memory) override;
  void release(Space space, std::byte* memory, std::size_t bytes) override;
  DeviceStatus memory(DeviceMemory* memory) override;
  DeviceStatus copy(Stream stream, std::byte* to, const std::byte* from,
                    std::size_t bytes) override;
  DeviceStatus fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) override;
  DeviceStatus launch(Stream stream, const Kernel& kernel, const RunArgs& args) override;
  Event record(Stream stream) override;
  DeviceStatus wait(Stream stream, Event event) override;
  DeviceStatus synchronize(Event event) override;
  DeviceStatus begin_capture() override;
  DeviceStatus end_capture(std::unique_ptr<CapturedWork>* work) override;
  DeviceStatus replay(const CapturedWork& work) override;
  DeviceStatus time(const Kernel& kernel, const RunArgs& args, double* seconds) override;

 private:
  CudaDevice(int number, KernelTable kernels);

  DeviceStatus start();
  StreamEvents& events(Stream stream) { return events_[static_cast<std::size_t>(stream)]; }
  cudaStream_t native(Stream stream) { return events(stream).stream(); }
  // What `later` is given from now on starts after all that `earlier` has been given.
  DeviceStatus order(Stream earlier, Stream later);
  DeviceStatus drain(Stream stream);
  DeviceStatus drain_all();
  // Runs the kernel and gives the time between two events of the compute stream.
  DeviceStatus time_once(const Kernel& kernel, const RunArgs& args, double* seconds);

  const int number_;
  const std::string name_;
  const KernelTable kernels_;
  DeviceFacts facts_;
  cudaDeviceProp properties_ = {};
  bool launches_wait_ = false;     // as CUDA_LAUNCH_BLOCKING asks: an error is the launched call's
  StreamEvents events_[2];         // by Stream
  cudaEvent_t meeting_ = nullptr;  // of order()
  cudaEvent_t timing_[2] = {};     // of time(): before and after the kernel
  struct Block {
    void* address = nullptr;  // that the runtime gave
    std::size_t bytes = 0;
  };
  std::map<std::byte*, Block> blocks_;  // by the address that allocate() gave
  std::size_t device_bytes_ = 0;        // of those that are the device's memory
  std::size_t used_at_start_ = 0;       // of the device's memory, by anyone
  bool capturing_ = false;
  std::int64_t before_capture_[2] = {0, 0};  // last tickets when the list began
  DeviceStatus unheard_;                     // of a record, which has no status
};

}  // namespace trainscope::cuda
