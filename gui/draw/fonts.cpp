// Measures text in the atlas of the sizes in use.
#include "gui/draw/fonts.h"

#include <fmt/format.h>
#include <imgui.h>

#include <cstdint>

#include "gui/draw/code_points.h"

namespace trainscope::gui {
namespace {

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80 || c == '\n' || c == '\r') return false;
  }
  return true;
}

}  // namespace

Fonts::Fonts(const FontSizes& sizes) : sizes_(sizes), atlas_(face_atlas(sizes, {})) {}

bool Fonts::resize(const FontSizes& sizes) {
  if (sizes == sizes_) return false;
  sizes_ = sizes;
  atlas_ = face_atlas(sizes_, known_);
  return true;
}

bool Fonts::settle() {
  const std::size_t before = known_.size();
  known_.merge(wanted_);
  wanted_.clear();
  if (known_.size() == before) return false;
  atlas_ = face_atlas(sizes_, known_);
  return true;
}

FaceMetrics Fonts::metrics(Face face) const {
  const ImFont* of_face = font(face);
  return {.line_height = of_face->FontSize / sizes_.scale,
          .ascent = of_face->Ascent / sizes_.scale};
}

float Fonts::width(std::string_view text, Face face) const {
  std::string storage;
  const std::string_view drawn = shown(text, face, storage);
  const ImFont* of_face = font(face);
  float pixels = 0.0F;
  for (std::string_view rest = drawn; !rest.empty();) {
    const CodePoint c = first_code_point(rest);
    rest.remove_prefix(c.bytes);
    pixels += of_face->GetCharAdvance(static_cast<ImWchar>(c.value));
  }
  return pixels / sizes_.scale;
}

std::string_view Fonts::shown(std::string_view text, Face face, std::string& storage) const {
  if (is_ascii(text)) return text;
  storage.clear();
  for (std::string_view rest = text; !rest.empty();) {
    const CodePoint c = first_code_point(rest);
    const bool small = c.value <= 0xFFFF && c.value >= 0x20;
    if (small && font(face)->FindGlyphNoFallback(static_cast<ImWchar>(c.value)) != nullptr) {
      append_utf8(storage, c.value);
    } else {
      storage += fmt::format("U+{:04X}", static_cast<std::uint32_t>(c.value));
      if (small && !known_.contains(c.value)) wanted_.insert(c.value);
    }
    rest.remove_prefix(c.bytes);
  }
  return storage;
}

}  // namespace trainscope::gui
