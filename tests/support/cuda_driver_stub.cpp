// A libcuda.so.1 for tests: answers what the environment says, as a real driver would; built with
// TRAINSCOPE_NO_DRIVER it is a library of that name without a driver's functions.
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

extern "C" {

#ifdef TRAINSCOPE_NO_DRIVER

int no_driver() { return number("STUB_CUDA_VERSION", 0); }

#else

int cuDriverGetVersion(int* version) {
  *version = number("STUB_CUDA_VERSION", 13000);
  return number("STUB_CUDA_VERSION_CODE", 0);
}

int cuInit(unsigned) { return number("STUB_CUDA_INIT_CODE", 0); }

int cuDeviceGetCount(int* count) {
  *count = number("STUB_CUDA_DEVICES", 1);
  return number("STUB_CUDA_COUNT_CODE", 0);
}

int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Stub GPU\033[31m", static_cast<std::size_t>(size));
  return 0;
}

int cuGetErrorString(int code, const char** text) {
  static const char* kText = "a stub's error";
  *text = code == 999 ? kText : nullptr;
  return code == 999 ? 0 : 1;
}

#endif

}  // extern "C"
