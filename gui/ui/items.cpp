// Looks items up and holds them against the rules.
#include "gui/ui/items.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainscope::gui {
namespace {

std::string place_of(const Item& item) {
  return fmt::format("{} '{}' {} at {:.0f},{:.0f} {:.0f}x{:.0f}", name_of(item.kind), item.path,
                     item.label, item.rect.x, item.rect.y, item.rect.width, item.rect.height);
}

// Whether a part of its text lies beyond its place, or where no moving brings it into view.
bool is_cut(const Item& item) {
  if (item.text.empty()) return false;
  const Rect& across = item.moves == Moves::kAll ? item.rect : item.seen;
  const Rect& down = item.moves == Moves::kNothing ? item.seen : item.rect;
  return item.text.x < across.x - 0.5F || item.text.right() > across.right() + 0.5F ||
         item.text.y < down.y - kBlankOfLine || item.text.bottom() > down.bottom() + kBlankOfLine;
}

}  // namespace

std::string_view name_of(ItemKind kind) {
  constexpr std::string_view kNames[] = {"button", "toggle",   "choice", "slider",
                                         "field",  "splitter", "row",    "column",
                                         "area",   "mark",     "label",  "number"};
  return kNames[static_cast<std::size_t>(kind)];
}

const Item* ItemRegistry::find(std::string_view path) const {
  const auto found = std::ranges::find(items_.rbegin(), items_.rend(), path, &Item::path);
  return found == items_.rend() ? nullptr : &*found;
}

std::vector<const Item*> ItemRegistry::below(std::string_view prefix) const {
  std::vector<const Item*> found;
  for (const Item& item : items_) {
    if (item.path.starts_with(prefix)) found.push_back(&item);
  }
  return found;
}

std::vector<std::string> faults_of(const ItemRegistry& registry) {
  std::vector<std::string> faults;
  for (const Item& item : registry.items()) {
    if (item.seen.empty()) continue;
    if (!item.fits || is_cut(item)) faults.push_back("clipped: " + place_of(item));
    if (is_control(item.kind) &&
        std::min(item.rect.width, item.rect.height) < kLeastControl - 0.01F) {
      faults.push_back("too small: " + place_of(item));
    }
    if (!item.label.empty() && item.ink != item.paper &&
        contrast(item.ink, item.paper) < kLeastContrast) {
      faults.push_back(fmt::format("contrast {:.2f} of {} on {}: {}",
                                   contrast(item.ink, item.paper), hex_of(item.ink),
                                   hex_of(item.paper), place_of(item)));
    }
  }
  return faults;
}

}  // namespace trainscope::gui
