// Settings as JSON.
#include "gui/workbench/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostRecent = 10;

Json to_json(const std::map<std::string, std::string>& texts) {
  Json json = Json::object();
  for (const auto& [key, value] : texts) json.set(key, value);
  return json;
}

std::map<std::string, std::string> texts_from(const Json& json, std::string_view key) {
  std::map<std::string, std::string> texts;
  if (!json.contains(key)) return texts;
  for (const JsonMember& member : json.object_at(key)) {
    texts.emplace(member.key, member.value.as_string());
  }
  return texts;
}

float number_from(const Json& json, std::string_view key, float fallback, float least,
                  float greatest) {
  const double value = json.get_or<double>(key, fallback);
  return static_cast<float>(std::clamp<double>(value, least, greatest));
}

Json to_json(const Layout& layout) {
  return Json::object({{"workspace", layout.workspace},
                       {"main_panels", to_json(layout.main_panels)},
                       {"strip_panels", to_json(layout.strip_panels)},
                       {"inspector_width", layout.inspector_width},
                       {"strip_height", layout.strip_height},
                       {"rail_width", layout.rail_width},
                       {"inspector", layout.inspector},
                       {"rail_pinned", layout.rail_pinned}});
}

Layout layout_from(const Json& json) {
  const Layout usual;
  return {.workspace = json.get_or("workspace", usual.workspace.c_str()),
          .main_panels = texts_from(json, "main_panels"),
          .strip_panels = texts_from(json, "strip_panels"),
          .inspector_width =
              number_from(json, "inspector_width", usual.inspector_width, 200.0F, 900.0F),
          .strip_height = number_from(json, "strip_height", usual.strip_height, 48.0F, 900.0F),
          .rail_width = number_from(json, "rail_width", usual.rail_width, 120.0F, 600.0F),
          .inspector = json.get_or<bool>("inspector", usual.inspector),
          .rail_pinned = json.get_or<bool>("rail_pinned", usual.rail_pinned)};
}

}  // namespace

bool is_layout_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && trim(name) == name &&
         printable(name) == name;
}

FontSizes Settings::fonts(float screen_scale) const {
  return {.text = text_size,
          .number = number_size,
          .scale = std::clamp(scale * screen_scale, kLeastScale, kGreatestScale)};
}

void Settings::remember(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  const std::string text = (ignored ? path : whole).lexically_normal().string();
  std::erase(recent, text);
  recent.insert(recent.begin(), text);
  if (recent.size() > kMostRecent) recent.resize(kMostRecent);
}

Settings with_look(Settings kept, const AskedLook& asked) {
  kept.theme = asked.theme.value_or(kept.theme);
  kept.scale = asked.scale.value_or(kept.scale);
  return kept;
}

Settings without_look(Settings settings, const Settings& kept, const AskedLook& asked) {
  if (settings.theme == asked.theme) settings.theme = kept.theme;
  if (settings.scale == asked.scale) settings.scale = kept.scale;
  return settings;
}

Json to_json(const Settings& settings) {
  Json layouts = Json::object();
  for (const auto& [name, layout] : settings.saved_layouts) layouts.set(name, to_json(layout));
  return Json::object({{"format", 1},
                       {"theme", theme_of(settings.theme).name},
                       {"text_size", settings.text_size},
                       {"number_size", settings.number_size},
                       {"scale", settings.scale},
                       {"reduced_motion", settings.reduced_motion},
                       {"tour_seen", settings.tour_seen},
                       {"recent", Json::list(settings.recent)},
                       {"layout", to_json(settings.layout)},
                       {"saved_layouts", std::move(layouts)}});
}

Settings settings_from(const Json& json) {
  const Settings usual;
  Settings settings;
  settings.theme = theme_named(json.get_or("theme", "dark")).value_or(ThemeName::kDark);
  settings.text_size = number_from(json, "text_size", usual.text_size, 11.0F, 24.0F);
  settings.number_size = number_from(json, "number_size", usual.number_size, 10.0F, 24.0F);
  settings.scale = number_from(json, "scale", usual.scale, kLeastScale, kGreatestScale);
  settings.reduced_motion = json.get_or<bool>("reduced_motion", false);
  settings.tour_seen = json.get_or<bool>("tour_seen", false);
  if (json.contains("recent")) {
    for (const Json& path : json.array_at("recent")) settings.recent.push_back(path.as_string());
  }
  if (json.contains("layout")) settings.layout = layout_from(json.at("layout"));
  if (json.contains("saved_layouts")) {
    for (const JsonMember& member : json.object_at("saved_layouts")) {
      require(is_layout_name(member.key), ErrorCode::kBadInput, "'{}' is no name of a layout",
              printable(member.key));
      settings.saved_layouts.emplace(member.key, layout_from(member.value));
    }
  }
  return settings;
}

KeptSettings kept_settings(const std::filesystem::path& file) {
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return {};
  try {
    return {.settings = settings_from(read_json_file(file))};
  } catch (const std::exception& exception) {
    std::string fault = error_of(exception).message();
    std::filesystem::path aside = file;
    aside += ".damaged";
    std::filesystem::rename(file, aside, error);
    if (!error) fault += fmt::format("; it is '{}' now", printable(aside.string()));
    return {.fault = std::move(fault)};
  }
}

void keep_settings(const Settings& settings, const std::filesystem::path& file) {
  std::error_code ignored;  // writing says what is wrong
  std::filesystem::create_directories(file.parent_path(), ignored);
  write_file_atomic(file, to_json(settings).dump(2) + "\n");
}

std::filesystem::path settings_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("XDG_CONFIG_HOME");
  if (folder.is_relative()) {
    const std::filesystem::path home = variable("HOME");
    if (home.empty()) return {};
    folder = home / ".config";
  }
  return folder / "trainscope" / "window.json";
}

}  // namespace trainscope::gui
