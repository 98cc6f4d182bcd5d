// What the programs of bench/gpu share: checked calls, JSON lines, random data, times by events.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace trainscope::bench {

// Every call is checked: a program ends at the first that fails, with what it was about.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("{\"kind\": \"error\", \"what\": \"%s\", \"error\": \"%s\"}\n", what,
              cudaGetErrorString(error));
  std::exit(1);
}

// The last launch's own error: a launch returns nothing.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

// A JSON object on a line of its own, field by field.
class Line {
 public:
  explicit Line(const char* kind) { text("kind", kind); }
  Line& text(const char* name, const std::string& value) {
    return raw(name, std::string("\"").append(value).append("\""));
  }
  Line& number(const char* name, double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    return raw(name, digits);
  }
  Line& count(const char* name, long long value) { return raw(name, std::to_string(value)); }
  Line& bits(const char* name, std::uint64_t value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "\"%llx\"", static_cast<unsigned long long>(value));
    return raw(name, digits);
  }
  Line& raw(const char* name, const std::string& value) {
    if (!fields_.empty()) fields_.append(", ");
    fields_.append("\"").append(name).append("\": ").append(value);
    return *this;
  }
  void print() const {
    std::printf("{%s}\n", fields_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string fields_;
};

// 32 well-mixed bits of an element's number.
__host__ __device__ inline std::uint32_t mixed(std::uint64_t value) {
  value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 29)) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(value >> 32);
}

// A number in [-1, 1) of 24 bits, the same on the host and on the device.
__host__ __device__ inline float random_number(std::uint64_t seed, std::uint64_t element) {
  return static_cast<float>(static_cast<std::int32_t>(mixed(seed * 0x100000001b3u + element)) >>
                            8) /
         8388608.0f;
}

template <class T>
__global__ void fill_random(T* values, std::size_t count, std::uint64_t seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    values[i] = static_cast<T>(random_number(seed, i));
}

// Memory of the device, freed with the object.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(&values_, count * sizeof(T)), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(values_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return values_; }
  std::size_t count() const { return count_; }
  void randomize(std::uint64_t seed) {
    fill_random<<<1024, 256>>>(values_, count_, seed);
    check_launch("fill_random");
  }
  std::vector<T> host() const {
    std::vector<T> copy(count_);
    check(cudaMemcpy(copy.data(), values_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
          "copy to the host");
    return copy;
  }

 private:
  T* values_ = nullptr;
  std::size_t count_ = 0;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Milliseconds of each of `repeats` runs of work(), by events, after `warm_up` that do not count.
template <class Work>
std::vector<double> event_times(const Work& work, int repeats, int warm_up = 2) {
  for (int i = 0; i < warm_up; ++i) work();
  std::vector<cudaEvent_t> marks(static_cast<std::size_t>(repeats) + 1);
  for (auto& mark : marks) check(cudaEventCreate(&mark), "cudaEventCreate");
  check(cudaEventRecord(marks[0]), "cudaEventRecord");
  for (int i = 0; i < repeats; ++i) {
    work();
    check(cudaEventRecord(marks[static_cast<std::size_t>(i) + 1]), "cudaEventRecord");
  }
  check(cudaDeviceSynchronize(), "timed work");
  std::vector<double> times;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, marks[i], marks[i + 1]), "cudaEventElapsedTime");
    times.push_back(milliseconds);
  }
  for (auto& mark : marks) cudaEventDestroy(mark);
  return times;
}

}  // namespace trainscope::bench
