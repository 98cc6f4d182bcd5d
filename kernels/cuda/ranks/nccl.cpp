// NCCL by dlopen: a machine with one GPU need not have it.
#include "kernels/cuda/ranks/nccl.h"

#include <dlfcn.h>

namespace trainscope::cuda {
namespace {

Nccl& functions_of_nccl() {
  static Nccl functions;
  return functions;
}

template <typename F>
void find_function(void* library, const char* name, F& function, std::string& missing) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

// The first name that the library lacks; empty: none.
std::string find_functions(void* library, Nccl& found) {
  std::string missing;
  find_function(library, "ncclGetVersion", found.version, missing);
  find_function(library, "ncclGetErrorString", found.error_string, missing);
  find_function(library, "ncclGetUniqueId", found.unique_id, missing);
  find_function(library, "ncclCommInitRank", found.init_rank, missing);
  find_function(library, "ncclCommGetAsyncError", found.async_error, missing);
  find_function(library, "ncclCommAbort", found.abort, missing);
  find_function(library, "ncclCommDestroy", found.destroy, missing);
  find_function(library, "ncclAllReduce", found.all_reduce, missing);
  find_function(library, "ncclReduceScatter", found.reduce_scatter, missing);
  find_function(library, "ncclAllGather", found.all_gather, missing);
  find_function(library, "ncclBroadcast", found.broadcast, missing);
  find_function(library, "ncclSend", found.send, missing);
  find_function(library, "ncclRecv", found.receive, missing);
  return missing;
}

}  // namespace

std::string Nccl::error_text(ncclResult_t status, const std::string& what) const {
  return what + ": status " + std::to_string(static_cast<int>(status)) + " (" +
         error_string(status) + ")";
}

std::string load_nccl(const char* file) {
  if (functions_of_nccl().version != nullptr) return {};
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return std::string("NCCL cannot be loaded: ") + (why == nullptr ? file : why);
  }
  Nccl found;
  const std::string missing = find_functions(library, found);
  if (!missing.empty()) return std::string(file) + " lacks " + missing;
  functions_of_nccl() = found;
  return {};
}

const Nccl& nccl() { return functions_of_nccl(); }

}  // namespace trainscope::cuda
