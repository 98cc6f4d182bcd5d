// Where the examples of a batch lie in its tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/api/tensor_view.h"

namespace trainscope {

// An example in a tensor whose batch axis need not be the first: `pieces` pieces, each after those
// of the other examples. As a row of its own it is these pieces one after the other.
class BatchLayout {
 public:
  BatchLayout(const TensorType& batch, int axis);

  std::int64_t pieces() const { return pieces_; }
  // Elements before a piece of an example in the batch, and of a piece.
  std::int64_t place(std::int64_t example, std::int64_t piece) const {
    return (piece * examples_ + example) * elements_;
  }
  std::int64_t piece_elements() const { return elements_; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(pieces_) * piece_bytes_; }

  void write_row(const std::byte* row, std::int64_t example, std::byte* batch) const;
  void clear_row(std::int64_t example, std::byte* batch) const;
  void read_row(const std::byte* batch, std::int64_t example, std::byte* row) const;

 private:
  std::size_t byte_place(std::int64_t example, std::int64_t piece) const {
    return static_cast<std::size_t>(piece * examples_ + example) * piece_bytes_;
  }

  std::int64_t pieces_ = 1;
  std::int64_t examples_ = 0;
  std::int64_t elements_ = 1;
  std::size_t piece_bytes_ = 0;
};

}  // namespace trainscope
