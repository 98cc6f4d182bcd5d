// Packs the font files into the program's read-only data; the build says where they are.
#include "gui/draw/font_files.h"

#include <array>

// A label at the file's first byte and one behind its last.
#define PACK(label, path)                     \
  asm(".pushsection .rodata\n"                \
      ".balign 16\n" #label                   \
      "_begin:\n"                             \
      ".incbin \"" path "\"\n" #label         \
      "_end:\n"                               \
      ".byte 0\n"                             \
      ".popsection\n");                       \
  extern "C" const std::byte label##_begin[]; \
  extern "C" const std::byte label##_end[]

PACK(trainscope_font_sans, TRAINSCOPE_FONT_SANS);
PACK(trainscope_font_sans_bold, TRAINSCOPE_FONT_SANS_BOLD);
PACK(trainscope_font_mono, TRAINSCOPE_FONT_MONO);

namespace trainscope::gui {

std::span<const std::byte> bytes_of(FontFile file) {
  static const std::array<std::span<const std::byte>, kFontFiles> files = {{
      {trainscope_font_sans_begin, trainscope_font_sans_end},
      {trainscope_font_sans_bold_begin, trainscope_font_sans_bold_end},
      {trainscope_font_mono_begin, trainscope_font_mono_end},
  }};
  return files[static_cast<std::size_t>(file)];
}

}  // namespace trainscope::gui
