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

}  // namespace trainscope::test
