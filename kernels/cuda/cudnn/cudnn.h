// NVIDIA's cuDNN: the functions of its backend API in one table, found when the back end starts.
#pragma once

#include <cudnn_graph.h>

#include <string>

namespace trainscope::cuda {

// Each function has the name that the library has it under.
struct Cudnn {
  decltype(&::cudnnGetVersion) version = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error_string = nullptr;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

  // "9.19.0"
  std::string version_text() const;
  // What the library has said since it was asked last, in lines.
  std::string last_words() const;
  // "cudnnBackendFinalize of a descriptor (matmul): status 3000 (CUDNN_STATUS_NOT_SUPPORTED), ..."
  // with the last words, in one line.
  std::string error_text(cudnnStatus_t status, const std::string& what) const;
};

// Loads the library `file`, once. Empty when it did, else why not: its absence is a normal state.
// TRAINSCOPE_CUDNN=off: it is not loaded.
std::string load_cudnn(const char* file = "libcudnn.so.9");
// The table, which is loaded: kernels that use it are in a device's list only then.
const Cudnn& cudnn();
// The library's handle for the thread's current device, made when it is first asked for; null, with
// the reason, where the library gives none.
cudnnHandle_t cudnn_handle(std::string* why_not);
// Of the thread's current device: "cuDNN 9.19.0", followed by why attention is not its work there,
// for which a small one is planned; or "no cuDNN: " and why not.
std::string cudnn_description();

}  // namespace trainscope::cuda
