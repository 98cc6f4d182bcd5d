// Why a box is where it is: for each placed box the set of placed boxes that hold it up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainscope::memplan {

// Sets of boxes, one bit each, in rows that are used as a stack.
class BoxSets {
 public:
  explicit BoxSets(std::size_t boxes) : words_((boxes + kBits - 1) / kBits) {}

  void clear(std::size_t row) {
    if (bits_.size() < (row + 1) * words_) bits_.resize((row + 1) * words_);
    std::fill_n(at(row), words_, 0);
  }
  void add(std::size_t row, std::int32_t box) { word(row, box) |= bit(box); }
  void remove(std::size_t row, std::int32_t box) { word(row, box) &= ~bit(box); }
  [[nodiscard]] bool contains(std::size_t row, std::int32_t box) {
    return (word(row, box) & bit(box)) != 0;
  }
  void add_all(std::size_t row, BoxSets& other, std::size_t other_row) {
    std::uint64_t* to = at(row);
    const std::uint64_t* from = other.at(other_row);
    for (std::size_t i = 0; i < words_; ++i) to[i] |= from[i];
  }

 private:
  static constexpr std::size_t kBits = 64;

  std::uint64_t* at(std::size_t row) { return bits_.data() + row * words_; }
  std::uint64_t& word(std::size_t row, std::int32_t box) {
    return at(row)[static_cast<std::size_t>(box) / kBits];
  }
  static std::uint64_t bit(std::int32_t box) {
    return std::uint64_t{1} << (static_cast<std::size_t>(box) % kBits);
  }

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_ = {};
};

// A box lies on the one that raised it last, which lies on another: without this chain it could
// lie lower.
class Culprits {
 public:
  explicit Culprits(std::size_t boxes) : raiser_(boxes, kNone), row_(boxes, 0), chains_(boxes) {}

  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::int32_t raiser(std::int32_t box) const {
    return raiser_[static_cast<std::size_t>(box)];
  }
  void set_raiser(std::int32_t box, std::int32_t raiser) {
    raiser_[static_cast<std::size_t>(box)] = raiser;
  }
  // `depth` boxes were placed before this one.
  void place(std::int32_t box, std::size_t depth) {
    row_[static_cast<std::size_t>(box)] = depth;
    chains_.clear(depth);
    blame(chains_, depth, box);
    chains_.add(depth, box);
  }
  // Adds the boxes that hold `box` up to a set.
  void blame(BoxSets& sets, std::size_t set, std::int32_t box) {
    const std::int32_t below = raiser(box);
    if (below != kNone) sets.add_all(set, chains_, row_[static_cast<std::size_t>(below)]);
  }

 private:
  std::vector<std::int32_t> raiser_;  // per box
  std::vector<std::size_t> row_;      // per placed box, in chains_
  BoxSets chains_;
};

}  // namespace trainscope::memplan
