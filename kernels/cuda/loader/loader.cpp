// dlopen in the order in which the libraries need each other.
#include "kernels/cuda/loader/loader.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/cuda/loader/library_folders.h"

namespace trainscope::cuda {
namespace {

constexpr const char* kPlugIn = "libtrainscope_cuda.so";
// Of NVIDIA. What a library needs is before it.
constexpr std::array kNeeded = {"libcudart.so.13", "libcublasLt.so.13"};
// These may be missing.
constexpr const char* kCudnn = "libcudnn.so.9";
constexpr const char* kNvrtc = "libnvrtc.so.13";
constexpr const char* kNvrtcBuiltins = "libnvrtc-builtins.so.13.";  // and the minor version
constexpr const char* kNccl = "libnccl.so.2";
constexpr const char* kCupti = "libcupti.so.13";

// By its path where a folder has it, else by its name; null with the reason in `why`.
void* open_library(const std::vector<std::filesystem::path>& folders, const char* file,
                   std::vector<LoadedLibrary>& files, std::string& why) {
  const std::filesystem::path path = find_library(folders, file);
  void* library = dlopen(path.empty() ? file : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    why = text == nullptr ? file : text;
    return nullptr;
  }
  files.push_back({.file = file, .path = path.string()});
  return library;
}

// cuDNN compiles attention with NVRTC, which it asks the system's loader for by its name, and that
// asks for its builtins: both find what is open already. The builtins are those beside NVRTC, so
// that the two are of one version.
void open_compiler(const std::vector<std::filesystem::path>& folders,
                   std::vector<LoadedLibrary>& files) {
  std::string ignored;
  const std::filesystem::path folder = find_library(folders, kNvrtc).parent_path();
  const std::string builtins = highest_numbered(folder, kNvrtcBuiltins);
  if (!builtins.empty()) (void)open_library({folder}, builtins.c_str(), files, ignored);
  (void)open_library(folders, kNvrtc, files, ignored);
}

std::string version_fault(const BackEndLibrary& library) {
  if (library.version != kDeviceVersion) {
    return std::string(kPlugIn) + " was built for version " + std::to_string(library.version) +
           " of the device interface, this program has " + std::to_string(kDeviceVersion);
  }
  if (library.bytes < sizeof(BackEndLibrary)) {
    return std::string(kPlugIn) + " lacks functions that this program calls";
  }
  return {};
}

}  // namespace

LoadedBackEnd load(const std::vector<std::filesystem::path>& folders) {
  LoadedBackEnd loaded;
  std::string why;
  if (find_library(folders, kPlugIn).empty()) {
    loaded.why_not = std::string("this build has no CUDA back end (") + kPlugIn + ")";
    return loaded;
  }
  for (const char* file : kNeeded) {
    if (open_library(folders, file, loaded.files, why) != nullptr) continue;
    loaded.why_not = "a library of CUDA is missing: " + why;
    return loaded;
  }
  open_compiler(folders, loaded.files);
  (void)open_library(folders, kCudnn, loaded.files, why);
  void* plug_in = open_library(folders, kPlugIn, loaded.files, why);
  if (plug_in == nullptr) {
    loaded.why_not = "the CUDA back end cannot be loaded: " + why;
    return loaded;
  }
  const auto function = reinterpret_cast<BackEndFunction>(dlsym(plug_in, kBackEndFunction));
  if (function == nullptr) {
    loaded.why_not = std::string(kPlugIn) + " is no back end: it lacks " + kBackEndFunction;
    return loaded;
  }
  const BackEndLibrary* library = function();
  loaded.why_not = version_fault(*library);
  if (loaded.why_not.empty()) loaded.library = library;
  return loaded;
}

const LoadedBackEnd& loaded_back_end() {
  static const LoadedBackEnd loaded = load(library_folders(places_of_this_process()));
  return loaded;
}

// The device is never given back: when a process ends, CUDA may be gone before its objects are.
MadeDevice make_device(int number) {
  const LoadedBackEnd& loaded = loaded_back_end();
  if (loaded.library == nullptr) return {.device = nullptr, .why_not = loaded.why_not};
  std::array<char, 1024> why = {};
  Device* device = loaded.library->make_device(number, why.data(), why.size());
  if (device == nullptr) return {.device = nullptr, .why_not = why.data()};
  return {.device = DeviceHandle(device, [](Device*) {})};
}

// A machine with one GPU need not have NCCL: it is opened by its path when ranks ask for it, and
// then found by its name; the library says why not.
MadeChannel make_channel(Device& device, std::shared_ptr<Communicator> hosts) {
  std::vector<LoadedLibrary> files;
  std::string ignored;
  (void)open_library(library_folders(places_of_this_process()), kNccl, files, ignored);
  std::array<char, 1024> why = {};
  Communicator* made =
      loaded_back_end().library->make_channel(device, *hosts, why.data(), why.size());
  if (made == nullptr) return {.channel = nullptr, .why_not = why.data()};
  // Ends before the hosts' channel, which it uses.
  return {.channel = {made, [hosts = std::move(hosts)](Communicator* channel) { delete channel; }}};
}

// As with NCCL: opened when a run is profiled.
MadeTracer make_tracer(Device& device) {
  std::vector<LoadedLibrary> files;
  std::string why_not;
  if (open_library(library_folders(places_of_this_process()), kCupti, files, why_not) == nullptr) {
    return {.tracer = nullptr, .why_not = "CUPTI cannot be loaded: " + why_not};
  }
  std::array<char, 1024> why = {};
  DeviceTracer* tracer = loaded_back_end().library->make_tracer(device, why.data(), why.size());
  if (tracer == nullptr) return {.tracer = nullptr, .why_not = why.data()};
  return {.tracer = tracer};
}

std::string describe(const Device& device) {
  std::array<char, 1024> text = {};
  loaded_back_end().library->describe(device, text.data(), text.size());
  return text.data();
}

}  // namespace trainscope::cuda
