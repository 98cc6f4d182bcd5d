// A library of NVIDIA that is opened where it is needed, so that it may be absent.
#pragma once

#include <dlfcn.h>

#include <string>

namespace trainscope::cuda {

// Stays open for as long as the process lives.
class Library {
 public:
  // `name` is for messages, `file` a path or a name that the system's loader knows.
  Library(const char* name, const char* file)
      : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* why = dlerror();
    fault_ = std::string(name) + " cannot be loaded: " + (why == nullptr ? file : why);
  }

  // Leaves null what the library lacks.
  template <typename F>
  void find(const char* name, F& function) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<F>(dlsym(handle_, name));
    if (function == nullptr && fault_.empty()) fault_ = file_ + " lacks " + name;
  }

  // Empty where it is open and has all that was looked for, else why not, in one line.
  const std::string& fault() const { return fault_; }

 private:
  std::string file_;
  void* handle_;
  std::string fault_;
};

}  // namespace trainscope::cuda
