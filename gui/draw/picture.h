// A picture in memory, and as a PNG file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/draw/color.h"

namespace trainscope::gui {

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<Color> pixels = {};  // rows from the top

  Color at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

// The bytes of a PNG file without alpha.
std::string png_bytes(const Picture& picture);

}  // namespace trainscope::gui
