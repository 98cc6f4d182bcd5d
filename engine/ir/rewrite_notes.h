// What a rewriter notes while a pass changes a graph: what its rewrite log is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/provenance.h"

namespace trainscope {

enum class NoteKind : std::uint8_t {
  kReplaced,  // readers of value `of` read value `other`
  kInside,    // what made node or value `of`, the node that makes value `other` does
  kDead,      // nobody reads node or value `of`
  kMadeOf,    // node or value `of` is new, made for node `other`
  kCopy,      // node `of` is new, and computes once more what node `other` computes
};

struct RewriteNote {
  NoteKind kind = NoteKind::kReplaced;
  std::uint16_t rule = 0;  // the pass itself, or the place in `rules`, from 1
  Serial of = kNoSerial;
  Serial other = kNoSerial;
};

// One of the things that a pass does, and why.
struct RewriteRule {
  std::string name;
  std::string reason;  // a sentence
};

struct RewriteNotes {
  std::vector<RewriteNote> list;
  std::vector<RewriteRule> rules;

  // The number of a rule of that name, the same for all its changes.
  std::uint16_t rule(std::string_view name, std::string_view reason) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].name == name) return static_cast<std::uint16_t>(i + 1);
    }
    rules.push_back({.name = std::string(name), .reason = std::string(reason)});
    return static_cast<std::uint16_t>(rules.size());
  }
};

}  // namespace trainscope
