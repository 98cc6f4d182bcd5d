// One kernel on one example on a device whose memory the host cannot touch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/api/device.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

struct DeviceRunOptions {
  std::byte poison{0xA5};              // what outputs and workspace hold before the run
  std::vector<InPlace> in_place = {};  // outputs that get their inputs' bytes
  bool captured = false;               // as a list of work that is replayed
  bool shifted = false;                // operands begin one element behind an aligned address
};

struct DeviceRunResult {
  DeviceStatus status = {};  // of the first thing that failed
  std::vector<Tensor> outputs = {};
  std::vector<std::string> faults = {};  // bytes written where none may be
};

// Memory of the device that runs use one after the other.
class DevicePool {
 public:
  explicit DevicePool(Device& device) : device_(device) {}
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  Device& device() const { return device_; }
  DeviceStatus reserve(std::size_t bytes);
  std::byte* data() const { return data_; }

 private:
  Device& device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

DeviceRunResult run_on_device(DevicePool& pool, const OpCase& op_case, const Kernel& kernel,
                              const DeviceRunOptions& options);

// What was queued is done, or has failed.
DeviceStatus wait_for_all(Device& device);

}  // namespace trainscope::test
