// Devices by the names of their back ends, and what only the CPU has.
#include "engine/exec/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/roofs/roofs.h"
#include "kernels/cpu/support/processor.h"
#include "kernels/cuda/loader/loader.h"

namespace trainscope {

#define BACK_END(name, folder)                                                   \
  namespace name {                                                               \
  MadeDevice make_device(int number);                                            \
  MadeChannel make_channel(Device& device, std::shared_ptr<Communicator> hosts); \
  }
#include "engine/exec/backends.def"
#undef BACK_END

namespace {

constexpr std::string_view kNames[] = {
#define BACK_END(name, folder) #name,
#include "engine/exec/backends.def"
#undef BACK_END
};

constexpr std::size_t kMostReasonBytes = 1024;

// "cuda:1": the back end and the number of its device.
struct DeviceName {
  std::string_view back_end;
  int number = 0;
};

std::optional<DeviceName> parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  DeviceName name{.back_end = text.substr(0, colon)};
  if (std::ranges::find(kNames, name.back_end) == std::end(kNames)) return {};
  if (colon == std::string_view::npos) return name;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), name.number);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  return whole && name.number >= 0 ? std::optional(name) : std::nullopt;
}

MadeDevice checked(MadeDevice made) {
  if (made.device == nullptr || made.device->facts().version == kDeviceVersion) return made;
  return {.device = nullptr,
          .why_not =
              fmt::format("the back end '{}' was built for version {} of the device "
                          "interface, this program has {}",
                          made.device->facts().name, made.device->facts().version, kDeviceVersion)};
}

MadeDevice make(const DeviceName& name) {
#define BACK_END(id, folder) \
  if (name.back_end == #id) return checked(id::make_device(name.number));
#include "engine/exec/backends.def"
#undef BACK_END
  return {};
}

// Each device once; one that is not there is asked for again.
MadeDevice found(const DeviceName& name) {
  static std::mutex mutex;
  static std::map<std::pair<std::string_view, int>, DeviceHandle> devices;
  const std::lock_guard lock(mutex);
  // The name of the table, which stays.
  const auto key = std::pair(*std::ranges::find(kNames, name.back_end), name.number);
  const auto known = devices.find(key);
  if (known != devices.end()) return {.device = known->second};
  MadeDevice made = make(name);
  if (made.device != nullptr) devices.emplace(key, made.device);
  return made;
}

DeviceName named(std::string_view text) {
  if (const std::optional<DeviceName> name = parse(text)) return *name;
  throw Error(ErrorCode::kUsage, fmt::format("there is no back end '{}'", printable(text)))
      .hint(nearest_hint(text, kNames));
}

}  // namespace

std::span<const std::string_view> back_end_names() { return kNames; }

bool names_device(std::string_view text) { return parse(text).has_value(); }

DeviceHandle device_of(std::string_view name) {
  MadeDevice made = found(named(name));
  if (made.device != nullptr) return std::move(made.device);
  throw Error(ErrorCode::kNoDevice, fmt::format("there is no device '{}'", printable(name)))
      .at(printable(made.why_not, kMostReasonBytes));
}

std::string why_no_device(std::string_view name) { return found(named(name)).why_not; }

std::shared_ptr<Communicator> device_channel(const DeviceHandle& device,
                                             std::shared_ptr<Communicator> hosts) {
  const DeviceName name = named(device->facts().name);
  MadeChannel made;
#define BACK_END(id, folder) \
  if (name.back_end == #id) made = id::make_channel(*device, std::move(hosts));
#include "engine/exec/backends.def"
#undef BACK_END
  if (made.channel != nullptr) return std::move(made.channel);
  throw Error(ErrorCode::kNoDevice, fmt::format("the ranks' devices cannot be connected, '{}' here",
                                                device->facts().name))
      .at(printable(made.why_not, kMostReasonBytes));
}

MadeTracer device_tracer(Device& device) {
  const std::optional<DeviceName> name = parse(device.facts().name);
  if (name && name->back_end == "cuda") {
    MadeTracer made = cuda::make_tracer(device);
    made.why_not = printable(made.why_not, kMostReasonBytes);
    return made;
  }
  return {.why_not = fmt::format("{} has nothing that records its work", device.facts().name)};
}

std::vector<std::string> cuda_description(std::string_view name) {
  std::vector<std::string> lines;
  const MadeDevice made = found(named(name));
  if (made.device != nullptr) {
    const std::string text = cuda::describe(*made.device);
    for (std::string_view line : split(text, '\n'))
      lines.push_back(printable(line, kMostReasonBytes));
  }
  for (const cuda::LoadedLibrary& library : cuda::loaded_back_end().files) {
    lines.push_back(
        printable(library.path.empty() ? library.file : library.path, kMostReasonBytes));
  }
  return lines;
}

DeviceHandle cpu_device() { return device_of("cpu"); }

const KernelTable& cpu_kernels() { return cpu_device()->kernels(); }

void add_cpu_kernel(std::string_view op, DType dtype, const Kernel& kernel) {
  cpu::add_kernel(op, dtype, kernel);
}

std::string_view cpu_isa() { return cpu::has_avx512() ? "AVX-512" : "AVX2"; }

Machine measure_cpu(const MeasureOptions& options) {
  start_threads(*cpu_device(), options.threads);
  return cpu::measure_machine(options);
}

void start_threads(Device& device, int threads) {
  const DeviceStatus status = device.start_threads(threads);
  if (status.done()) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot start {} threads: {}", threads, status.message))
      .hint("--threads 1, or a higher limit of threads (`ulimit -u`, or the cgroup's pids.max)");
}

}  // namespace trainscope
