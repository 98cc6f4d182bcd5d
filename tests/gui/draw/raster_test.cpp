// The rasteriser: no gap and no overlap between triangles, text where it belongs; PNG as zlib
// reads.
#include "gui/draw/raster.h"

#include <doctest/doctest.h>
#include <imgui.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "gui/draw/fonts.h"
#include "gui/draw/imgui_canvas.h"

namespace trainscope::gui {
namespace {

// A frame without a window, drawn by `draw`.
template <typename Draw>
Picture drawn(int width, int height, Draw draw) {
  const Fonts fonts;
  ImGuiContext* context = ImGui::CreateContext(fonts.atlas());
  ImGui::GetIO().IniFilename = nullptr;
  ImGui::GetIO().DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  ImGui::GetStyle().AntiAliasedLinesUseTex = false;
  ImGui::NewFrame();
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  ImGuiCanvas canvas(list, fonts,
                     {0.0F, 0.0F, static_cast<float>(width), static_cast<float>(height)});
  draw(canvas, list);
  ImGui::Render();
  Picture picture = rasterized(*ImGui::GetDrawData(), *fonts.atlas(), rgb(0x000000));
  ImGui::DestroyContext(context);
  return picture;
}

TEST_CASE("rasterized: a rectangle is exactly its pixels") {
  const Picture picture = drawn(40, 30, [](ImGuiCanvas& canvas, ImDrawList&) {
    canvas.fill({5.0F, 6.0F, 10.0F, 8.0F}, rgb(0xff8000));
  });
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      const bool inside = x >= 5 && x < 15 && y >= 6 && y < 14;
      REQUIRE(picture.at(x, y) == (inside ? rgb(0xff8000) : rgb(0x000000)));
    }
  }
}

TEST_CASE("rasterized: triangles that share edges leave no gap and cover nothing twice") {
  // A fan around a point at an odd place, half transparent: what is covered twice is brighter.
  const Picture picture = drawn(64, 64, [](ImGuiCanvas&, ImDrawList& list) {
    list.Flags = 0;  // no softened edges
    const ImVec2 middle(31.3F, 29.7F);
    const std::vector<ImVec2> ring = {ImVec2(0, 0),   ImVec2(40, 0),  ImVec2(64, 0), ImVec2(64, 33),
                                      ImVec2(64, 64), ImVec2(20, 64), ImVec2(0, 64), ImVec2(0, 17)};
    for (std::size_t i = 0; i < ring.size(); ++i) {
      list.AddTriangleFilled(middle, ring[i], ring[(i + 1) % ring.size()],
                             IM_COL32(255, 255, 255, 128));
    }
  });
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) REQUIRE(picture.at(x, y) == rgb(0x808080));
  }
}

TEST_CASE("rasterized: clips cut, and text has ink only where it stands") {
  const Picture picture = drawn(80, 40, [](ImGuiCanvas& canvas, ImDrawList&) {
    canvas.push_clip({0.0F, 0.0F, 40.0F, 40.0F});
    canvas.fill({30.0F, 0.0F, 30.0F, 10.0F}, rgb(0x00ff00));
    canvas.pop_clip();
    canvas.text({4.0F, 20.0F}, "HH", Face::kText, rgb(0xffffff));
  });
  CHECK(picture.at(39, 5) == rgb(0x00ff00));
  CHECK(picture.at(40, 5) == rgb(0x000000));
  int bright = 0;
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 80; ++x) {
      const bool in_text = x >= 4 && x < 30 && y >= 20 && y < 36;
      const bool has_ink = picture.at(x, y).blue > 100;
      if (has_ink) {
        ++bright;
        CHECK(in_text);
      }
    }
  }
  CHECK(bright > 20);
}

TEST_CASE("png_bytes: the rows as they were, behind a header") {
  Picture picture{.width = 3, .height = 2};
  picture.pixels = {rgb(0x010203), rgb(0x102030), rgb(0xffffff),
                    rgb(0x000000), rgb(0x00ff00), rgb(0x0a0b0c)};
  const std::string file = png_bytes(picture);
  REQUIRE(file.starts_with(std::string("\x89PNG\r\n\x1a\n", 8)));
  const std::size_t data = file.find("IDAT");
  REQUIRE(data != std::string::npos);
  std::string rows(2 * (1 + 3 * 3), '\0');
  uLongf size = rows.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                     reinterpret_cast<const Bytef*>(file.data() + data + 4),
                     file.size() - data - 4) == Z_OK);
  REQUIRE(size == rows.size());
  for (int y = 0; y < 2; ++y) {
    std::size_t at = static_cast<std::size_t>(y) * 10;
    REQUIRE(rows[at++] == 1);
    Color sum{0, 0, 0};
    for (int x = 0; x < 3; ++x) {
      sum.red = static_cast<std::uint8_t>(sum.red + static_cast<unsigned char>(rows[at++]));
      sum.green = static_cast<std::uint8_t>(sum.green + static_cast<unsigned char>(rows[at++]));
      sum.blue = static_cast<std::uint8_t>(sum.blue + static_cast<unsigned char>(rows[at++]));
      CHECK(sum == picture.at(x, y));
    }
  }
}

}  // namespace
}  // namespace trainscope::gui
