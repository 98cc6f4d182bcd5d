// Copying of examples between rows of their own and a batch.
#include "engine/core/batch_layout.h"

#include <cstring>

#include "engine/core/error.h"

namespace trainscope {

BatchLayout::BatchLayout(const TensorType& batch, int axis) {
  const Shape& shape = batch.shape;
  CHECK_INVARIANT(axis >= 0 && axis < shape.rank);
  for (int a = 0; a < axis; ++a) pieces_ *= shape[a];
  for (int a = axis + 1; a < shape.rank; ++a) elements_ *= shape[a];
  examples_ = shape[axis];
  piece_bytes_ = static_cast<std::size_t>(elements_) * size_of(batch.dtype);
}

void BatchLayout::write_row(const std::byte* row, std::int64_t example, std::byte* batch) const {
  for (std::int64_t piece = 0; piece < pieces_; ++piece) {
    const std::byte* from = row + static_cast<std::size_t>(piece) * piece_bytes_;
    std::memcpy(batch + byte_place(example, piece), from, piece_bytes_);
  }
}

void BatchLayout::clear_row(std::int64_t example, std::byte* batch) const {
  for (std::int64_t piece = 0; piece < pieces_; ++piece) {
    std::memset(batch + byte_place(example, piece), 0, piece_bytes_);
  }
}

void BatchLayout::read_row(const std::byte* batch, std::int64_t example, std::byte* row) const {
  for (std::int64_t piece = 0; piece < pieces_; ++piece) {
    std::byte* to = row + static_cast<std::size_t>(piece) * piece_bytes_;
    std::memcpy(to, batch + byte_place(example, piece), piece_bytes_);
  }
}

}  // namespace trainscope
