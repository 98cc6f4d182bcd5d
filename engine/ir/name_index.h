// Values by name, without a copy of any name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace trainscope {

// A hash table of positions in a list of things that have a `name`, which every call is given: the
// names stay where they are, and a copy of the list needs no other table than a copy of this one.
class NameIndex {
 public:
  static constexpr std::int32_t kNone = -1;

  template <typename Things>
  std::int32_t find(const Things& things, std::string_view name) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = first_slot(name);; at = next_slot(at)) {
      if (slots_[at] == kNone) return kNone;
      if (slots_[at] != kErased && name_at(things, slots_[at]) == name) return slots_[at];
    }
  }

  // Adds things[position]; false when another has its name.
  template <typename Things>
  bool add(const Things& things, std::int32_t position) {
    const std::string_view name = name_at(things, position);
    if (find(things, name) != kNone) return false;
    if (4 * (used_ + 1) > 3 * slots_.size()) rebuild(things);
    put(name, position);
    ++live_;
    return true;
  }

  // Forgets things[position], which still has the name that it was added with.
  template <typename Things>
  void erase(const Things& things, std::int32_t position) {
    for (std::size_t at = first_slot(name_at(things, position)); slots_[at] != kNone;
         at = next_slot(at)) {
      if (slots_[at] != position) continue;
      slots_[at] = kErased;
      --live_;
      return;
    }
  }

 private:
  static constexpr std::int32_t kErased = -2;  // a search goes on behind it

  template <typename Things>
  static std::string_view name_at(const Things& things, std::int32_t position) {
    return things[static_cast<std::size_t>(position)].name;
  }
  // At most half of the slots are taken afterwards.
  template <typename Things>
  void rebuild(const Things& things) {
    const std::vector<std::int32_t> old = emptied();
    for (std::int32_t position : old) {
      if (position >= 0) put(name_at(things, position), position);
    }
  }
  std::vector<std::int32_t> emptied();
  void put(std::string_view name, std::int32_t position);
  std::size_t first_slot(std::string_view name) const;
  std::size_t next_slot(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  std::vector<std::int32_t> slots_;  // a power of two of them, or none
  std::size_t used_ = 0;             // slots that are not kNone
  std::size_t live_ = 0;             // ... and not kErased
};

}  // namespace trainscope
