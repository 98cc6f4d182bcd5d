// The rewrite log of a stage: what a pass did to each node and value that it did anything to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/rewrite_notes.h"

namespace trainscope {

enum class RewriteKind : std::uint8_t {
  kAdded,           // new; made of `others`
  kRematerialized,  // new; computes once more what the one in `others` computes
  kRenamed,         // `detail` is its name now
  kChanged,         // in place; `detail` says what: type, inputs, attributes
  kUnread,          // still there, but the last of its readers, `others`, are gone or read another
  kReplaced,        // gone; readers read the values `others` instead
  kInside,          // gone; the node in `others` does its work
  kSplit,           // gone; the nodes `others` do its work together
  kFolded,          // gone; the constants `others` are its results
  kDead,            // gone; nobody read it
  kRemoved,         // gone, and no reason was recorded
};
inline constexpr int kRewriteKinds = 11;
// "added", "rematerialized", "renamed", "changed", "unread", "replaced", "inside", "split",
// "folded", "dead", "removed".
std::string_view name_of(RewriteKind kind);
// Whether a node or value is not in the graph any more.
inline bool is_gone(RewriteKind kind) { return kind >= RewriteKind::kReplaced; }

// A node or value of some stage by its serial, and by its name there.
struct NamedThing {
  bool is_node = false;
  Serial serial = kNoSerial;  // kNoSerial: of the ONNX model, which has names alone
  std::string name = {};

  bool operator==(const NamedThing&) const = default;
};

struct RewriteEntry {
  RewriteKind kind = RewriteKind::kAdded;
  NamedThing thing = {};                // with the name that it had before, if there was any
  std::vector<NamedThing> others = {};  // see RewriteKind
  std::string detail = {};
  std::uint16_t rule = 0;  // a position in RewriteLog::rules
};

// Linear in what the pass changed. An empty log: nothing changed but perhaps the order.
struct RewriteLog {
  std::vector<RewriteRule> rules;  // the first is the pass itself
  std::vector<RewriteEntry> entries;
};

// Compares two graphs of which `pass` has made the second of the first: what is in one and not in
// the other, by serials, and as the notes explain it. What no note explains is kRemoved.
RewriteLog rewrite_log(const Graph& before, const Graph& after, const RewriteNotes& notes,
                       RewriteRule pass);

// stages/NN-NAME.rewrites.jsonl (docs/run-format.md): a line for each rule, then one for each
// entry.
std::string rewrite_log_text(const RewriteLog& log);
// The log of such a text; throws kBadInput naming the line.
RewriteLog rewrite_log_from(std::string_view text);

}  // namespace trainscope
