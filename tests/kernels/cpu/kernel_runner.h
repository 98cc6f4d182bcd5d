// Runs one kernel on vectors: memory is poisoned before and guarded behind.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/api/random.h"

namespace trainscope::cpu {

template <typename T>
struct Host {
  Shape shape;
  std::vector<T> values;
  bool present = true;

  static Host absent() { return {.shape = {}, .values = {}, .present = false}; }
  static Host zeros(Shape shape) {
    return {.shape = shape, .values = std::vector<T>(static_cast<std::size_t>(shape.elements()))};
  }
  // Standard normal numbers, the same for f32 and f64 up to rounding.
  static Host random(Shape shape, std::uint64_t stream) {
    Host host = zeros(shape);
    for (std::size_t i = 0; i < host.values.size(); ++i) {
      host.values[i] = static_cast<T>(static_cast<float>(random_normal(7, stream, i)));
    }
    return host;
  }
};

// `bytes` bytes of 0xFF (NaN in f32 and f64), aligned to 64, with a guard of 64 bytes behind.
class PoisonedMemory {
 public:
  explicit PoisonedMemory(std::size_t bytes) : bytes_(bytes), storage_(bytes + 2 * kGuard, 0xFF) {
    void* start = storage_.data();
    std::size_t space = storage_.size();
    data_ = static_cast<unsigned char*>(std::align(kGuard, bytes + kGuard, start, space));
  }
  void* data() const { return data_; }
  bool guard_is_intact() const {
    return std::all_of(data_ + bytes_, data_ + bytes_ + kGuard,
                       [](unsigned char byte) { return byte == 0xFF; });
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t bytes_;
  std::vector<unsigned char> storage_;
  unsigned char* data_ = nullptr;
};

template <typename T>
struct KernelCase {
  Params params = NoParams{};
  std::vector<Host<T>> inputs;
  std::vector<Shape> outputs;
  int threads = 1;
};

// Which of the table's kernels for an op: the first whose name ends in `name`, null when there is
// none or it refuses the case.
template <typename T>
class KernelRun {
 public:
  KernelRun(const KernelTable& table, std::string_view op, std::string_view name,
            KernelCase<T> kernel_case)
      : case_(std::move(kernel_case)) {
    for (const Host<T>& input : case_.inputs) {
      inputs_.push_back({.type = {.dtype = kDTypeOf<T>, .shape = input.shape},
                         .data = const_cast<T*>(input.values.data()),
                         .present = input.present});
    }
    for (const Shape& shape : case_.outputs) {
      outputs_.push_back({.type = {.dtype = kDTypeOf<T>, .shape = shape}, .data = nullptr});
    }
    const PrepareArgs args{
        .params = case_.params, .inputs = inputs_, .outputs = outputs_, .threads = case_.threads};
    for (const Kernel* kernel : table.find(op, kDTypeOf<T>)) {
      if (!kernel->name.ends_with(name)) continue;
      if (kernel->supports == nullptr || kernel->supports(args)) kernel_ = kernel;
      break;
    }
    if (kernel_ != nullptr && kernel_->prepare != nullptr) prepared_ = kernel_->prepare(args);
  }

  KernelRun(const KernelRun&) = delete;

  bool supported() const { return kernel_ != nullptr; }
  std::size_t workspace_bytes() const { return prepared_.workspace_bytes; }

  std::vector<std::vector<T>> run() {
    REQUIRE(supported());
    std::vector<PoisonedMemory> memory;
    for (const TensorView& output : outputs_) memory.emplace_back(output.type.bytes());
    memory.emplace_back(prepared_.workspace_bytes);
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = memory[i].data();
    kernel_->run({.params = case_.params,
                  .inputs = inputs_,
                  .outputs = outputs_,
                  .workspace = memory.back().data(),
                  .state = prepared_.state.get(),
                  .threads = case_.threads});
    for (const PoisonedMemory& part : memory) CHECK(part.guard_is_intact());
    std::vector<std::vector<T>> results;
    for (const TensorView& output : outputs_) {
      results.emplace_back(output.as<T>(), output.as<T>() + output.elements());
    }
    return results;
  }

 private:
  KernelCase<T> case_;
  std::vector<TensorView> inputs_;
  std::vector<TensorView> outputs_;
  const Kernel* kernel_ = nullptr;
  Prepared prepared_;
};

// Equal bit by bit, so that a NaN equals itself.
template <typename T>
bool same_bits(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b) {
  const auto equal = [](const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() &&
           (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

// ‖a - b‖ / ‖b‖; infinite when the sizes differ or a NaN is met.
template <typename A, typename B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
  return norm == 0.0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace trainscope::cpu
