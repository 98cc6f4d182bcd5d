// A host tensor that owns its memory: constants, initial parameters, file contents, test data.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/api/tensor_view.h"

namespace trainscope {

// Dense row-major; memory is 64-byte aligned and, but for unwritten(), zeroed on creation. Copies
// are deep.
class Tensor {
 public:
  Tensor() : Tensor(TensorType{}) {}
  explicit Tensor(TensorType type);
  // For who writes all elements before any is read: memory as it comes.
  static Tensor unwritten(TensorType type);
  Tensor(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&&) noexcept = default;

  template <typename T>
  static Tensor of(Shape shape, std::span<const T> values);
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, std::span<const T>(&value, 1));
  }
  // A one-dimensional int64 tensor: axes, shapes, indices.
  static Tensor ints(std::span<const std::int64_t> values) {
    return of<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values);
  }

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  std::int64_t elements() const { return type_.elements(); }
  std::size_t bytes() const { return type_.bytes(); }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  template <typename T>
  std::span<T> values() {
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(elements())};
  }
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(elements())};
  }
  TensorView view() const { return {.type = type_, .data = data_.get()}; }

  // The same elements under another shape with equally many elements.
  Tensor reshaped(Shape shape) &&;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  Tensor(TensorType type, std::byte* data);

  TensorType type_;
  std::unique_ptr<std::byte[], Free> data_;
};

// Elements converted one by one as static_cast does (float to bool: != 0).
Tensor convert(const Tensor& tensor, DType to);
// An integer tensor's elements as int64 (i32 and i64 only).
std::vector<std::int64_t> as_ints(const Tensor& tensor);

template <typename T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor t(TensorType{.dtype = kDTypeOf<T>, .shape = shape});
  std::copy(values.begin(), values.end(), t.values<T>().begin());
  return t;
}

}  // namespace trainscope
