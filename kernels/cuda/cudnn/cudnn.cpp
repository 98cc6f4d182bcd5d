// cuDNN by dlopen: whoever loads this library has opened the file before, where there is one.
#include "kernels/cuda/cudnn/cudnn.h"

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernels/cuda/support/library.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostErrorBytes = std::size_t{64} << 10;
constexpr std::size_t kLeastVersion = 90000;

struct LoadedCudnn {
  Cudnn functions;
  std::string why_not = "it was not loaded";
  std::array<cudnnHandle_t, kMostDevices> handles = {};
};
LoadedCudnn& loaded() {
  static LoadedCudnn library;
  return library;
}

void find_all(Library& library, Cudnn& found) {
  library.find("cudnnGetVersion", found.version);
  library.find("cudnnGetErrorString", found.error_string);
  library.find("cudnnGetLastErrorString", found.last_error_string);
  library.find("cudnnCreate", found.create);
  library.find("cudnnSetStream", found.set_stream);
  library.find("cudnnBackendCreateDescriptor", found.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", found.destroy_descriptor);
  library.find("cudnnBackendSetAttribute", found.set_attribute);
  library.find("cudnnBackendGetAttribute", found.get_attribute);
  library.find("cudnnBackendFinalize", found.finalize);
  library.find("cudnnBackendExecute", found.execute);
}

std::string why_not_loaded(const char* file, Cudnn& found) {
  const char* wanted = std::getenv("TRAINSCOPE_CUDNN");
  if (wanted != nullptr && std::string_view(wanted) == "off") return "TRAINSCOPE_CUDNN=off";
  Library library("it", file);
  find_all(library, found);
  if (!library.fault().empty()) return library.fault();
  if (found.version() < kLeastVersion) return found.version_text() + " is older than 9.0";
  return {};
}

// Without line breaks, and without blanks at the ends.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::string Cudnn::version_text() const {
  const std::size_t number = version();  // 91900 of 9.19.0
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

std::string Cudnn::last_words() const {
  std::vector<char> words(kMostErrorBytes, '\0');
  last_error_string(words.data(), words.size());
  words.back() = '\0';
  return words.data();
}

std::string Cudnn::error_text(cudnnStatus_t status, const std::string& what) const {
  const std::string said = one_line(last_words());
  return what + ": status " + std::to_string(static_cast<int>(status)) + " (" +
         error_string(status) + ")" + (said.empty() ? "" : ", " + said);
}

std::string load_cudnn(const char* file) {
  LoadedCudnn& library = loaded();
  if (library.functions.version != nullptr) return library.why_not;
  Cudnn found;
  library.why_not = why_not_loaded(file, found);
  if (library.why_not.empty()) library.functions = found;
  return library.why_not;
}

const Cudnn& cudnn() { return loaded().functions; }

cudnnHandle_t cudnn_handle(std::string* why_not) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= static_cast<int>(kMostDevices)) {
    *why_not = "CUDA has no current device";
    return nullptr;
  }
  cudnnHandle_t& handle = loaded().handles[static_cast<std::size_t>(device)];
  if (handle != nullptr) return handle;
  const cudnnStatus_t status = cudnn().create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    handle = nullptr;
    *why_not = cudnn().error_text(status, "cudnnCreate");
  }
  return handle;
}

}  // namespace trainscope::cuda
