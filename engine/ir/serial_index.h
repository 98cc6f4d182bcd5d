// Nodes, values and notes by serial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/rewrite_log.h"
#include "engine/ir/rewrite_notes.h"

namespace trainscope {

// A number for some serials; kNone for the others. Serials are dense in a compilation; those of a
// file that is read may not be, and cost no memory.
class SerialMap {
 public:
  static constexpr std::int32_t kNone = -1;

  SerialMap(Serial last, std::size_t count) {
    const auto size = static_cast<std::size_t>(last) + 1;
    if (size <= kDensest + kMostGaps * count) dense_.assign(size, kNone);
  }

  void set(Serial serial, std::int32_t number) {
    if (dense_.empty()) {
      sparse_[serial] = number;
    } else {
      dense_[static_cast<std::size_t>(serial)] = number;
    }
  }
  std::int32_t get(Serial serial) const {
    if (!dense_.empty()) {
      const auto at = static_cast<std::size_t>(serial);
      return at < dense_.size() ? dense_[at] : kNone;
    }
    const auto found = sparse_.find(serial);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  static constexpr std::size_t kDensest = std::size_t{1} << 20;
  static constexpr std::size_t kMostGaps = 64;  // for each that is there

  std::vector<std::int32_t> dense_;
  std::unordered_map<Serial, std::int32_t> sparse_;
};

// Where nodes and values are in a graph.
class SerialIndex {
 public:
  explicit SerialIndex(const Graph& graph)
      : graph_(graph),
        nodes_(graph.last_serial(), graph.node_capacity()),
        values_(graph.last_serial(), graph.value_capacity()) {
    for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
      nodes_.set(graph.node(id).serial, static_cast<std::int32_t>(id));
    }
    for (ValueId id : graph.live_values()) {
      values_.set(graph.value(id).serial, static_cast<std::int32_t>(id));
    }
  }

  const Graph& graph() const { return graph_; }
  NodeId node(Serial serial) const { return static_cast<NodeId>(nodes_.get(serial)); }
  ValueId value(Serial serial) const { return static_cast<ValueId>(values_.get(serial)); }
  bool has(Serial serial) const { return node(serial) != kNoNode || value(serial) != kNoValue; }

  NamedThing named(NodeId id) const {
    const Node& node = graph_.node(id);
    return {.is_node = true, .serial = node.serial, .name = node.name};
  }
  NamedThing named(ValueId id) const {
    const Value& value = graph_.value(id);
    return {.is_node = false, .serial = value.serial, .name = value.name};
  }

 private:
  static_assert(SerialMap::kNone == static_cast<std::int32_t>(kNoNode));
  static_assert(SerialMap::kNone == static_cast<std::int32_t>(kNoValue));

  const Graph& graph_;
  SerialMap nodes_;
  SerialMap values_;
};

// Notes by what they are about; of several about one thing the last, but a replacement stays one.
class NoteIndex {
 public:
  NoteIndex(const RewriteNotes& notes, Serial last)
      : notes_(notes),
        gone_(last, notes.list.size()),
        dead_(last, notes.list.size()),
        made_(last, notes.list.size()) {
    for (std::size_t i = 0; i < notes.list.size(); ++i) {
      const RewriteNote& note = notes.list[i];
      const RewriteNote* known = gone(note.of);
      if (note.kind == NoteKind::kDead) {
        dead_.set(note.of, static_cast<std::int32_t>(i));
      } else if (note.kind == NoteKind::kMadeOf || note.kind == NoteKind::kCopy) {
        made_.set(note.of, static_cast<std::int32_t>(i));
      } else if (known == nullptr || known->kind != NoteKind::kReplaced) {
        gone_.set(note.of, static_cast<std::int32_t>(i));
      }
    }
  }

  // Null where there is none.
  const RewriteNote* gone(Serial of) const { return find(gone_, of); }
  const RewriteNote* dead(Serial of) const { return find(dead_, of); }
  const RewriteNote* made(Serial of) const { return find(made_, of); }

 private:
  const RewriteNote* find(const SerialMap& map, Serial of) const {
    const std::int32_t at = map.get(of);
    return at == SerialMap::kNone ? nullptr : &notes_.list[static_cast<std::size_t>(at)];
  }

  const RewriteNotes& notes_;
  SerialMap gone_;  // replaced, or inside
  SerialMap dead_;
  SerialMap made_;
};

}  // namespace trainscope
