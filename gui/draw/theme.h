// The colours of the window, by what they are for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gui/draw/color.h"

namespace trainscope::gui {

enum class ThemeName : std::uint8_t { kDark, kLight, kColorBlind };
inline constexpr std::array kThemeNames = {ThemeName::kDark, ThemeName::kLight,
                                           ThemeName::kColorBlind};

// As many as a plan has classes of buffers; families of ops and other kinds take them too.
inline constexpr std::size_t kSeriesColors = 9;
inline constexpr std::size_t kPhaseColors = 3;       // forward, backward, update
inline constexpr std::size_t kDifferenceColors = 3;  // added, removed, changed

struct Theme {
  std::string_view name;   // "dark", "light", "color-blind"
  std::string_view title;  // for people

  // Papers: what lies under text.
  Color background;  // between regions
  Color panel;
  Color inset;   // fields and plots
  Color header;  // titles, table heads, menus
  Color control;
  Color hovered;
  Color selected;  // a chosen row
  Color stripe;    // every second row

  Color line;  // between regions, grids
  Color ink;
  Color soft_ink;  // of less weight; also what cannot be used now
  Color accent;    // the selection, links, focus: as ink and as paper under accent_ink
  Color accent_ink;
  Color good;
  Color warning;
  Color error;

  std::array<Color, kSeriesColors> series;
  std::array<Color, kPhaseColors> phases;
  std::array<Color, kDifferenceColors> differences;

  std::array<Color, 8> papers() const {
    return {background, panel, inset, header, control, hovered, selected, stripe};
  }
  std::array<Color, 6> inks() const { return {ink, soft_ink, accent, good, warning, error}; }
};

const Theme& theme_of(ThemeName name);
std::optional<ThemeName> theme_named(std::string_view name);

}  // namespace trainscope::gui
