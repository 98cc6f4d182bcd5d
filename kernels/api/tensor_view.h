// Shapes and dense row-major tensor views: what kernels and planners see of a tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "kernels/api/dtype.h"

namespace trainscope {

inline constexpr int kMaxRank = 8;

// Dimensions of a dense row-major tensor; rank 0 is a scalar. Every dimension is known and >= 0.
struct Shape {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> dims{};

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> d) : Shape(std::span(d.begin(), d.size())) {}
  // d.size() must be <= kMaxRank: callers that read files check it before (engine/onnx).
  explicit Shape(std::span<const std::int64_t> d) : rank(static_cast<int>(d.size())) {
    std::copy(d.begin(), d.end(), dims.begin());
  }

  std::int64_t operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> span() const {
    return {dims.data(), static_cast<std::size_t>(rank)};
  }
  // Product of the dimensions; 1 for a scalar, 0 if any dimension is 0.
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : span()) n *= d;
    return n;
  }
  void push_back(std::int64_t d) { dims[static_cast<std::size_t>(rank++)] = d; }
  bool operator==(const Shape& o) const {
    return rank == o.rank && std::equal(span().begin(), span().end(), o.span().begin());
  }
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  bool operator==(const TensorType&) const = default;
};

// Memory of one tensor, dense row-major, not owned. data may be null when the tensor is empty or
// absent (an optional input that the node leaves out).
struct TensorView {
  TensorType type;
  void* data = nullptr;
  bool present = true;

  std::int64_t elements() const { return type.elements(); }
  const Shape& shape() const { return type.shape; }
  // The typed pointer; T must match type.dtype (kernels are chosen by dtype, so it does).
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace trainscope
