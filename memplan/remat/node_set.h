// A set of nodes as bits, which gives them back in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainscope::memplan {

class NodeSet {
 public:
  explicit NodeSet(std::int32_t nodes) : words_((static_cast<std::size_t>(nodes) + 63) / 64) {}

  // Whether it was not yet in the set.
  bool insert(std::int32_t node) {
    std::uint64_t& word = words_[static_cast<std::size_t>(node) / 64];
    const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(node) & 63u);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }

  // Empties the set, whose nodes are those of `nodes`, and puts them into ascending order.
  void take_in_order(std::vector<std::int32_t>& nodes) {
    if (nodes.empty()) return;
    const auto [least, most] = std::minmax_element(nodes.begin(), nodes.end());
    const auto first = static_cast<std::size_t>(*least) / 64;
    const auto last = static_cast<std::size_t>(*most) / 64;
    if (last - first > kFewWords * nodes.size()) {
      for (const std::int32_t node : nodes) words_[static_cast<std::size_t>(node) / 64] = 0;
      std::sort(nodes.begin(), nodes.end());
      return;
    }
    std::size_t place = 0;
    for (std::size_t i = first; i <= last; ++i) {
      std::uint64_t word = words_[i];
      for (; word != 0; word &= word - 1) {
        nodes[place++] = static_cast<std::int32_t>(i * 64) + std::countr_zero(word);
      }
      words_[i] = 0;
    }
  }

 private:
  static constexpr std::size_t kFewWords = 4;  // for each node are read sooner than nodes sorted

  std::vector<std::uint64_t> words_;
};

}  // namespace trainscope::memplan
