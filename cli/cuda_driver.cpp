// Asks libcuda.so.1 with the few functions of its C interface that say what is there.
#include "cli/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

struct Functions {
  int (*driver_version)(int*) = nullptr;           // cuDriverGetVersion
  int (*init)(unsigned) = nullptr;                 // cuInit
  int (*device_count)(int*) = nullptr;             // cuDeviceGetCount
  int (*device_name)(char*, int, int) = nullptr;   // cuDeviceGetName
  int (*error_text)(int, const char**) = nullptr;  // cuGetErrorString; may be absent
};

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& functions) {
  find(library, "cuGetErrorString", functions.error_text);
  return find(library, "cuDriverGetVersion", functions.driver_version) &&
         find(library, "cuInit", functions.init) &&
         find(library, "cuDeviceGetCount", functions.device_count) &&
         find(library, "cuDeviceGetName", functions.device_name);
}

std::string driver_error(const Functions& functions, int code) {
  const char* text = nullptr;
  const bool known = functions.error_text != nullptr &&
                     functions.error_text(code, &text) == kSuccess && text != nullptr;
  return known ? fmt::format("error {}, {}", code, printable(text)) : fmt::format("error {}", code);
}

void add_devices(const Functions& functions, CudaDriver& driver) {
  int count = 0;
  const int code = functions.device_count(&count);
  if (code != kSuccess) {
    driver.problem =
        fmt::format("the driver cannot count devices: {}", driver_error(functions, code));
    return;
  }
  for (int device = 0; device < count; ++device) {
    std::array<char, 256> name = {};
    const int named = functions.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
    driver.devices.push_back(named == kSuccess ? printable(name.data())
                                               : "a device without a name");
  }
  if (count == 0) driver.problem = "the driver finds no device";
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaDriver find_cuda_driver() {
  CudaDriver driver;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    driver.problem =
        fmt::format("there is no NVIDIA driver: {}", printable(why == nullptr ? kLibrary : why));
    return driver;
  }
  Functions functions;
  if (!find_all(library, functions)) {
    driver.problem = fmt::format("{} is no CUDA driver: it lacks its functions", kLibrary);
    return driver;
  }
  int version = 0;
  const int asked = functions.driver_version(&version);
  if (asked != kSuccess || version <= 0) {
    driver.problem =
        fmt::format("the driver does not tell its version: {}", driver_error(functions, asked));
    return driver;
  }
  driver.version = version;
  if (version < kLeastCudaVersion) {
    driver.problem = fmt::format("the driver is too old: it knows CUDA {}, needed is {}",
                                 cuda_version_text(version), cuda_version_text(kLeastCudaVersion));
    return driver;
  }
  const int started = functions.init(0);
  if (started == kNoDevice) {
    driver.problem = "the driver finds no device";
  } else if (started != kSuccess) {
    driver.problem = fmt::format("the driver does not start: {}", driver_error(functions, started));
  } else {
    add_devices(functions, driver);
  }
  return driver;
}

std::string device_name_of(std::string_view device, const CudaDriver& driver) {
  constexpr std::string_view kCuda = "cuda";
  if (!device.starts_with(kCuda)) return {};
  const std::size_t colon = device.find(':');
  const auto index = colon == std::string_view::npos ? std::optional<std::int64_t>(0)
                                                     : parse_int(device.substr(colon + 1));
  if (!index || *index < 0 || *index >= std::ssize(driver.devices)) return {};
  return driver.devices[static_cast<std::size_t>(*index)];
}

}  // namespace trainscope
