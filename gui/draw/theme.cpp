// Three themes. Series are at least 20 apart in CIE L*a*b* in every vision, all inks are read on
// all papers at 4.5:1; tests hold both.
#include "gui/draw/theme.h"

namespace trainscope::gui {
namespace {

constexpr Theme kDarkTheme = {
    .name = "dark",
    .title = "Dark",
    .background = rgb(0x131416),
    .panel = rgb(0x1b1c1f),
    .inset = rgb(0x151619),
    .header = rgb(0x232529),
    .control = rgb(0x2b2e33),
    .hovered = rgb(0x34383f),
    .selected = rgb(0x1f3654),
    .stripe = rgb(0x1f2023),
    .line = rgb(0x3a3d44),
    .ink = rgb(0xe6e8ec),
    .soft_ink = rgb(0xaab0ba),
    .accent = rgb(0x7cbcff),
    .accent_ink = rgb(0x0c0d0f),
    .good = rgb(0x63cfa0),
    .warning = rgb(0xeacb52),
    .error = rgb(0xff9b88),
    .series = {rgb(0x4988f7), rgb(0xc77fd6), rgb(0x8290a0), rgb(0xacd9fd), rgb(0xe8703a),
               rgb(0x34b68b), rgb(0xeacb52), rgb(0x9a6a4a), rgb(0xdedfe0)},
    .phases = {rgb(0x4988f7), rgb(0xe8703a), rgb(0xeacb52)},
    .differences = {rgb(0x34b68b), rgb(0xe8703a), rgb(0xeacb52)}};

constexpr Theme kLightTheme = {
    .name = "light",
    .title = "Light",
    .background = rgb(0xdfe2e7),
    .panel = rgb(0xfcfcfd),
    .inset = rgb(0xffffff),
    .header = rgb(0xeef0f3),
    .control = rgb(0xe4e7ec),
    .hovered = rgb(0xd6dce5),
    .selected = rgb(0xcfe1fa),
    .stripe = rgb(0xf4f5f7),
    .line = rgb(0xbfc5ce),
    .ink = rgb(0x15171b),
    .soft_ink = rgb(0x4a515c),
    .accent = rgb(0x0a4fae),
    .accent_ink = rgb(0xffffff),
    .good = rgb(0x00593d),
    .warning = rgb(0x6b4c00),
    .error = rgb(0x9c2a00),
    .series = {rgb(0x215dd2), rgb(0x8f3d9e), rgb(0x7d8590), rgb(0x2696ee), rgb(0xa83b08),
               rgb(0x008355), rgb(0xaf8c00), rgb(0x6d381e), rgb(0x2c3138)},
    .phases = {rgb(0x215dd2), rgb(0xa83b08), rgb(0xaf8c00)},
    .differences = {rgb(0x008355), rgb(0xa83b08), rgb(0xaf8c00)}};

constexpr Theme color_blind_theme() {
  Theme theme = kDarkTheme;
  theme.name = "color-blind";
  theme.title = "Dark, for few colours";
  theme.accent = rgb(0x77daff);
  theme.good = rgb(0x77daff);
  theme.warning = rgb(0xede03e);
  theme.error = rgb(0xffb38a);
  theme.series = {rgb(0x016ad0), rgb(0xda82b2), rgb(0x5f6d67), rgb(0x77daff), rgb(0xd65e00),
                  rgb(0x2ba96a), rgb(0xede03e), rgb(0x8e5399), rgb(0xe6f0ed)};
  theme.phases = {rgb(0x016ad0), rgb(0xd65e00), rgb(0xede03e)};
  theme.differences = {rgb(0x77daff), rgb(0xd65e00), rgb(0xede03e)};
  return theme;
}
constexpr Theme kColorBlindTheme = color_blind_theme();

}  // namespace

const Theme& theme_of(ThemeName name) {
  switch (name) {
    case ThemeName::kLight:
      return kLightTheme;
    case ThemeName::kColorBlind:
      return kColorBlindTheme;
    case ThemeName::kDark:
      break;
  }
  return kDarkTheme;
}

std::optional<ThemeName> theme_named(std::string_view name) {
  for (const ThemeName candidate : kThemeNames) {
    if (theme_of(candidate).name == name) return candidate;
  }
  return std::nullopt;
}

}  // namespace trainscope::gui
