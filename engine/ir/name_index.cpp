// Open addressing, slot after slot.
#include "engine/ir/name_index.h"

#include <functional>
#include <utility>

namespace trainscope {
namespace {

constexpr std::size_t kFewestSlots = 16;

}  // namespace

std::size_t NameIndex::first_slot(std::string_view name) const {
  return std::hash<std::string_view>()(name) & (slots_.size() - 1);
}

std::vector<std::int32_t> NameIndex::emptied() {
  std::size_t slots = kFewestSlots;
  while (slots < 2 * (live_ + 1)) slots *= 2;
  used_ = 0;
  return std::exchange(slots_, std::vector<std::int32_t>(slots, kNone));
}

void NameIndex::put(std::string_view name, std::int32_t position) {
  std::size_t at = first_slot(name);
  while (slots_[at] >= 0) at = next_slot(at);
  if (slots_[at] == kNone) ++used_;
  slots_[at] = position;
}

}  // namespace trainscope
