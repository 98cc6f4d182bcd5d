// What a user has set, and how regions lie: kept in a file of the user's, written whole.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"
#include "gui/draw/fonts.h"
#include "gui/draw/theme.h"

namespace trainscope::gui {

inline constexpr float kLeastScale = 0.75F;
inline constexpr float kGreatestScale = 3.0F;

// Sizes in logical pixels.
struct Layout {
  std::string workspace = "overview";
  std::map<std::string, std::string> main_panels = {};   // by workspace, where it is not the first
  std::map<std::string, std::string> strip_panels = {};  // by workspace
  float inspector_width = 300.0F;
  float strip_height = 96.0F;
  float rail_width = 220.0F;  // when it is pinned
  bool inspector = true;
  bool rail_pinned = false;

  bool operator==(const Layout&) const = default;
};

// 1 to kMostNameBytes bytes that can be printed, with no blanks at their ends.
inline constexpr std::size_t kMostNameBytes = 60;
bool is_layout_name(std::string_view name);

// Logical pixels; below, the inspector opens over the main region, and the rail stays shut.
inline constexpr int kLeastWideWindow = 900;

struct Settings {
  ThemeName theme = ThemeName::kDark;
  float text_size = 14.0F;
  float number_size = 13.0F;
  float scale = 1.0F;  // on top of the screen's own
  bool reduced_motion = false;
  bool tour_seen = false;
  std::vector<std::string> recent = {};  // paths, the newest first
  Layout layout = {};
  std::map<std::string, Layout> saved_layouts = {};  // by name

  FontSizes fonts(float screen_scale) const;
  void remember(const std::filesystem::path& path);  // as the newest of the recent ones

  bool operator==(const Settings&) const = default;
};

// What a command line asks of one window alone.
struct AskedLook {
  std::optional<ThemeName> theme = {};
  std::optional<float> scale = {};
};
Settings with_look(Settings kept, const AskedLook& asked);
// Of a window that began with_look(kept, asked): what was asked for is as it was kept, unless it
// was changed in the window.
Settings without_look(Settings settings, const Settings& kept, const AskedLook& asked);

Json to_json(const Settings& settings);
// Throws kBadInput; what is out of range is brought into it.
Settings settings_from(const Json& json);

struct KeptSettings {
  Settings settings = {};
  std::string fault = {};  // why they are the usual ones; empty: they are not, or nothing was kept
};
// Of the file, or the usual ones where it is not there (or empty: nowhere). One that cannot be read
// is put aside as FILE.damaged, so that what it has is not lost when the settings are kept.
KeptSettings kept_settings(const std::filesystem::path& file);
void keep_settings(const Settings& settings, const std::filesystem::path& file);  // throws kIo

// $XDG_CONFIG_HOME/trainscope/window.json, else in ~/.config; empty where there is no home.
std::filesystem::path settings_file();

}  // namespace trainscope::gui
