// Builds the index of a plan, and finds in it.
#include "gui/views/palette_index.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "engine/core/text.h"
#include "gui/views/inspection_rows.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

// Of ASCII alone: names are looked through letter by letter for each that is typed.
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_word(char c) { return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9'); }

// Letters in their order, the first of them not before `at`; 0: not all are found.
int score_from(std::string_view query, std::string_view text, std::size_t at) {
  int score = 0;
  bool follows = false;
  for (const char wanted : query) {
    if (wanted == ' ') {
      follows = false;
      continue;
    }
    std::size_t found = at;
    const char letter = lower(wanted);
    while (found < text.size() && lower(text[found]) != letter) ++found;
    if (found == text.size()) return 0;
    const bool begins = found == 0 || !is_word(text[found - 1]) ||
                        (is_upper(text[found]) && is_lower(text[found - 1]));
    const bool has_case = text[found] == wanted;
    score += 1 + (has_case ? 1 : 0) + (begins ? 8 : 0) + (follows && found == at ? 10 : 0);
    follows = true;
    at = found + 1;
  }
  return score;
}

bool matches_op(std::string_view pattern, std::string_view op) {
  return matches_pattern(op, pattern);
}

}  // namespace

std::string_view name_of(FindKind kind) {
  constexpr std::string_view kNames[] = {"command", "node",   "ONNX", "past node",
                                         "tensor",  "kernel", "stage"};
  return kNames[static_cast<std::size_t>(kind)];
}

int fuzzy_score(std::string_view query, std::string_view text) {
  // From each place where the first letter is: the first of them need not be the best.
  const std::size_t first = query.find_first_not_of(' ');
  if (first == std::string_view::npos) return 0;
  int best = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != lower(query[first])) continue;
    const int score = score_from(query, text, i);
    if (score == 0) break;  // nor is the rest of it found from a later place
    best = std::max(best, score);
  }
  // Of equal ones the shorter.
  return best == 0 ? 0 : best * 16 + std::max(0, 64 - static_cast<int>(text.size()));
}

bool matches_shape(std::string_view pattern, std::string_view type) {
  const std::size_t open = type.find('[');
  if (open == std::string_view::npos || !pattern.ends_with(']')) return false;
  const std::vector<std::string_view> wanted = split(pattern.substr(1, pattern.size() - 2), ',');
  const std::vector<std::string_view> dims =
      split(type.substr(open + 1, type.size() - open - 2), ',');
  if (wanted.size() != dims.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::string_view dim = trim(wanted[i]);
    if (dim != "*" && dim != trim(dims[i])) return false;
  }
  return true;
}

void PaletteIndex::add_plan(const PlanLinks& links) {
  const PlanView& plan = links.plan();
  std::set<std::string> dtypes;
  std::set<std::string_view> kernels;
  std::vector<std::size_t> entry_of_node(plan.nodes.size());
  entries_.reserve(entries_.size() + plan.nodes.size() + plan.values.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    const std::string name(plan.text(node.name));
    entry_of_node[i] = entries_.size();
    add({.kind = FindKind::kNode,
         .name = name,
         .detail = std::string(plan.text(node.op)),
         .target = "node:" + name});
  }
  for (std::uint32_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& value = plan.values[i];
    if (value.kind == PlanValueKind::kErased || value.serial == 0) continue;
    const std::string name(plan.text(value.name));
    dtypes.emplace(plan.text(value.dtype));
    add({.kind = FindKind::kValue,
         .name = name,
         .detail = type_of(plan, value),
         .target = "value:" + name});
    if (value.producer >= plan.nodes.size()) continue;
    const std::string_view op = plan.text(plan.nodes[value.producer].op);
    for (const std::uint32_t reader : links.nodes_that_read(i)) {
      readings_.push_back({.entry = entry_of_node[value.producer],
                           .op = std::string(op),
                           .reader_op = std::string(plan.text(plan.nodes[reader].op))});
    }
  }
  for (const PlanCall& call : plan.calls) {
    const std::string_view kernel = profiler::kernel_of(plan, call);
    if (!kernels.insert(kernel).second) continue;
    add({.kind = FindKind::kKernel,
         .name = std::string(kernel),
         .detail = std::string(plan.op_of(call)),
         .target = "kernel:" + std::string(kernel)});
  }
  dtypes_.assign(dtypes.begin(), dtypes.end());
}

void PaletteIndex::add_gone(std::vector<GoneNode> nodes) {
  entries_.reserve(entries_.size() + nodes.size());
  for (GoneNode& node : nodes) {
    for (std::string& reader : node.readers) {
      readings_.push_back(
          {.entry = entries_.size(), .op = node.op, .reader_op = std::move(reader)});
    }
    std::string target = "model:" + node.name;
    add({.kind = FindKind::kModelNode,
         .name = std::move(node.name),
         .detail = node.op.empty() ? std::move(node.fate) : node.op + ": " + node.fate,
         .target = std::move(target)});
  }
}

void PaletteIndex::add_past(std::vector<PastNode> nodes, std::span<const StageFacts> stages) {
  entries_.reserve(entries_.size() + nodes.size());
  for (PastNode& node : nodes) {
    if (node.stage >= stages.size()) continue;
    std::string target = "node@" + stages[node.stage].label + ":" + node.name;
    add({.kind = FindKind::kPastNode,
         .name = std::move(node.name),
         .detail = std::move(node.fate),
         .target = std::move(target)});
  }
}

void PaletteIndex::find_readings(std::string_view from, std::string_view to,
                                 std::vector<Found>& found) const {
  for (const Reading& reading : readings_) {
    if (!matches_op(from.empty() ? "*" : from, reading.op)) continue;
    if (!matches_op(to.empty() ? "*" : to, reading.reader_op)) continue;
    found.push_back({reading.entry, 1});
  }
  std::ranges::sort(found, {}, &Found::entry);
  const auto rest = std::ranges::unique(found, {}, &Found::entry);
  found.erase(rest.begin(), rest.end());
}

namespace {

// 0: it is not found. `is_dtype`: what is wanted is the name of one.
int score_of(const FindEntry& entry, std::string_view wanted, bool is_dtype) {
  if (wanted.empty()) return entry.kind == FindKind::kCommand ? 1 : 0;
  const bool is_value = entry.kind == FindKind::kValue;
  if (wanted.starts_with('[')) return is_value && matches_shape(wanted, entry.detail) ? 1 : 0;
  if (is_dtype) {
    return is_value && entry.detail.substr(0, entry.detail.find('[')) == wanted ? 1 : 0;
  }
  return std::max(fuzzy_score(wanted, entry.name) * 2, fuzzy_score(wanted, entry.detail));
}

}  // namespace

std::vector<Found> PaletteIndex::find(std::string_view query, std::size_t most) const {
  const std::string_view wanted = trim(query);
  std::vector<Found> found;
  const std::size_t arrow = wanted.find("->");
  if (arrow != std::string_view::npos) {
    find_readings(trim(wanted.substr(0, arrow)), trim(wanted.substr(arrow + 2)), found);
  } else {
    const bool is_dtype = std::ranges::find(dtypes_, wanted) != dtypes_.end();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const int score = score_of(entries_[i], wanted, is_dtype);
      if (score > 0) found.push_back({i, score});
    }
    const auto last = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
    std::ranges::partial_sort(found, last, [this](const Found& a, const Found& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::pair(entries_[a.entry].kind, a.entry) <
             std::pair(entries_[b.entry].kind, b.entry);
    });
  }
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace trainscope::gui
