// The window without a window, on a made run, for tests of what is done in it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "gui/platform/headless.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui::test {

// Made once for all cases of the program: a small text model with a profile.
inline const MadeRun& text_run() {
  static const MadeRun run("text", *compiled("gpt2", kSmallText));
  return run;
}
inline const MadeRun& image_run() {
  static const MadeRun run("image", *compiled("lenet"));
  return run;
}
inline const MadeRun& branched_run() {
  static const MadeRun run("branched", *compiled("unet", {{"image", std::int64_t{16}},
                                                          {"width", std::int64_t{4}},
                                                          {"depth", std::int64_t{2}}}));
  return run;
}
inline const MadeRun& plain_run() {  // not profiled
  static const MadeRun run("plain", *compiled("mlp"), 0);
  return run;
}

class WindowDriver : public Headless {
 public:
  explicit WindowDriver(const std::filesystem::path& path, Settings settings = {},
                        const Headless::Look& look = {})
      : Headless(std::move(settings), look) {
    if (!path.empty()) workbench().open(path);
    settle();
  }
  bool has(std::string_view path) const { return items().find(path) != nullptr; }
  std::string label(std::string_view path) const {
    const Item* item = items().find(path);
    return item == nullptr ? std::string() : item->label;
  }
  // Whether the items below the path have the text on them. A paragraph is an item a line, and ends
  // its lines within a name of a file that is longer than they are: blanks do not count.
  bool says(std::string_view below, std::string_view text) const {
    std::string all;
    for (const Item* item : items().below(below)) {
      all += item->kind == ItemKind::kLabel ? item->label : '\n' + item->label + '\n';
    }
    return without_blanks(all).find(without_blanks(text)) != std::string::npos;
  }
  static std::string without_blanks(std::string_view text) {
    std::string kept(text);
    std::erase(kept, ' ');
    return kept;
  }
  const Layout& layout() { return workbench().settings.layout; }
  // What commands change: settings, layout, selection, runs, what lies over the regions, the
  // clipboard, notes, which region has the keys.
  std::string state_text() {
    Workbench& bench = workbench();
    return to_json(bench.settings).dump() + bench.selected_name() + "|" +
           std::to_string(static_cast<int>(bench.overlay)) + (bench.maximized ? "|maximised" : "") +
           "|" + std::to_string(bench.count()) + " " + std::to_string(bench.active()) + "|" +
           std::to_string(bench.notes.notes.size()) + "|" + app().memory().clipboard + "|" +
           app().memory().region;
  }
  // What is drawn that has a meaning: every item, and where it is.
  std::string drawn_text() const {
    std::string text;
    for (const Item& item : items().items()) {
      text += fmt::format("{} '{}' '{}' {:.1f},{:.1f} {:.1f}x{:.1f}\n", item.path, item.label,
                          item.value, item.rect.x, item.rect.y, item.rect.width, item.rect.height);
    }
    return text;
  }
};

}  // namespace trainscope::gui::test
