// A matrix of bits, one row of packed words for each node and one column for each stage.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainscope::memplan {

class BitRows {
 public:
  BitRows() = default;
  BitRows(std::int32_t rows, std::int32_t columns)
      : words_((static_cast<std::size_t>(columns) + 63) / 64),
        bits_(words_ * static_cast<std::size_t>(rows)) {}

  bool test(std::int32_t row, std::int32_t column) const {
    return (word(row, column) >> (static_cast<unsigned>(column) & 63u) & 1u) != 0;
  }
  void set(std::int32_t row, std::int32_t column) {
    bits_[index(row, column)] |= std::uint64_t{1} << (static_cast<unsigned>(column) & 63u);
  }
  void clear(std::int32_t row, std::int32_t column) {
    bits_[index(row, column)] &= ~(std::uint64_t{1} << (static_cast<unsigned>(column) & 63u));
  }
  // Inverts the columns first..last, both included.
  void flip(std::int32_t row, std::int32_t first, std::int32_t last) {
    const std::size_t begin = index(row, first);
    const std::size_t end = index(row, last);
    for (std::size_t at = begin; at <= end; ++at) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (at == begin) mask &= ~std::uint64_t{0} << (static_cast<unsigned>(first) & 63u);
      if (at == end) mask &= ~std::uint64_t{0} >> (63u - (static_cast<unsigned>(last) & 63u));
      bits_[at] ^= mask;
    }
  }
  void reset() { bits_.assign(bits_.size(), 0); }

  // The first column >= `column` whose bit is set, or -1.
  std::int32_t next_set(std::int32_t row, std::int32_t column) const {
    return scan_up(row, column, 0);
  }
  // The first column >= `column` whose bit is not set, or -1.
  std::int32_t next_clear(std::int32_t row, std::int32_t column) const {
    return scan_up(row, column, ~std::uint64_t{0});
  }
  // The last column <= `column` whose bit is set, or -1.
  std::int32_t previous_set(std::int32_t row, std::int32_t column) const {
    if (column < 0) return -1;
    const std::size_t base = words_ * static_cast<std::size_t>(row);
    std::size_t at = index(row, column);
    std::uint64_t found =
        bits_[at] & (~std::uint64_t{0} >> (63u - (static_cast<unsigned>(column) & 63u)));
    while (found == 0) {
      if (at == base) return -1;
      found = bits_[--at];
    }
    return static_cast<std::int32_t>((at - base) * 64 + 63 -
                                     static_cast<std::size_t>(std::countl_zero(found)));
  }

  friend bool operator==(const BitRows&, const BitRows&) = default;

 private:
  std::size_t index(std::int32_t row, std::int32_t column) const {
    return words_ * static_cast<std::size_t>(row) + static_cast<std::size_t>(column) / 64;
  }
  std::uint64_t word(std::int32_t row, std::int32_t column) const {
    return bits_[index(row, column)];
  }
  std::int32_t scan_up(std::int32_t row, std::int32_t column, std::uint64_t inverted) const {
    const std::size_t base = words_ * static_cast<std::size_t>(row);
    std::size_t at = index(row, column);
    if (at >= base + words_) return -1;
    std::uint64_t found =
        (bits_[at] ^ inverted) & (~std::uint64_t{0} << (static_cast<unsigned>(column) & 63u));
    while (found == 0) {
      if (++at == base + words_) return -1;
      found = bits_[at] ^ inverted;
    }
    return static_cast<std::int32_t>((at - base) * 64 +
                                     static_cast<std::size_t>(std::countr_zero(found)));
  }

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace trainscope::memplan
