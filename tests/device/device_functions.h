// What device.h promises, asked of a device one promise at a time.
#pragma once

#include <string>
#include <vector>

#include "kernels/api/device.h"

namespace trainscope::test {

struct Promise {
  std::string name;
  std::string fault = {};  // empty: kept
};
// Kernels of the device itself are not needed.
std::vector<Promise> check_device_functions(Device& device);

}  // namespace trainscope::test
