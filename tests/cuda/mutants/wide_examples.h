// Examples on which kernels go round more often, over more blocks and tiles, than on the op rows'
// own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainscope::test {

struct WideExample {
  std::string_view op;
  std::string text;
};

// Ragged: no size is a multiple of the blocks, tiles and packs that it is cut into.
std::vector<WideExample> wide_examples();
// Those of the loads of tiles.
void add_ragged_examples(std::vector<WideExample>& examples);
// Those of unrolled loops, and of types and indices.
void add_edge_examples(std::vector<WideExample>& examples);

// The example for elements of two bytes, whose sums and statistics are in f32: the op's inputs that
// are these get that type. As it is where the op has none.
std::string with_f32_sums(std::string_view op, std::string_view example);

}  // namespace trainscope::test
