// The window in every theme and size, and what is wrong with it there.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {

struct Screen {
  Extent logical;
  float scale;
};
inline constexpr Screen kScreens[] = {{{1280.0F, 720.0F}, 1.0F},  // 1280x720
                                      {{1280.0F, 720.0F}, 2.0F},  // 2560x1440
                                      {{640.0F, 360.0F}, 1.5F}};  // 960x540

template <typename Check>
void in_look(const std::filesystem::path& run, Settings settings, const Screen& screen,
             Check check) {
  const std::string_view theme = theme_of(settings.theme).name;
  INFO(theme, " ", screen.logical.width, "x", screen.logical.height, " x", screen.scale);
  WindowDriver window(run, std::move(settings), {.size = screen.logical, .scale = screen.scale});
  check(window);
}

template <typename Check>
void in_all_looks(const std::filesystem::path& run, Check check) {
  for (const ThemeName theme : kThemeNames) {
    for (const Screen& screen : kScreens) {
      Settings settings;
      settings.theme = theme;
      in_look(run, settings, screen, check);
    }
  }
}

// In every theme and in every size, but not in all pairs of them.
template <typename Check>
void in_each_look(const std::filesystem::path& run, Check check) {
  static_assert(std::size(kScreens) == kThemeNames.size());
  for (std::size_t i = 0; i < kThemeNames.size(); ++i) {
    Settings settings;
    settings.theme = kThemeNames[i];
    in_look(run, settings, kScreens[i], check);
  }
}

inline std::string all_faults(const WindowDriver& window) {
  std::string text;
  for (const std::string& fault : faults_of(window.items())) text += fault + "\n";
  return text;
}

inline bool is_whole(const Item& item) {
  return item.seen.width > item.rect.width - 0.5F && item.seen.height > item.rect.height - 0.5F;
}

// Items with such paths that are not seen as a whole, where nothing can be scrolled.
inline std::string hidden_parts(const WindowDriver& window, std::string_view prefix) {
  std::string text;
  for (const Item* item : window.items().below(prefix)) {
    if (!is_whole(*item)) text += fmt::format("hidden: {} '{}'\n", item->path, item->label);
  }
  return text;
}

// Goes through a text that is scrolled, page by page, and checks each.
template <typename Check>
void on_all_pages(WindowDriver& window, const std::string& scrolled, Check check) {
  constexpr int kMostPages = 60;
  constexpr float kPage = -4.0F;  // turns of the wheel: less than the lowest window is high
  const auto offset = [&] { return window.app().memory().scroll[scrolled]; };
  for (int page = 0; page < kMostPages; ++page) {
    check();
    const float before = offset();
    if (!window.wheel(scrolled, kPage)) return;
    window.step();
    if (offset() == before) return;
  }
}

}  // namespace trainscope::gui::test
