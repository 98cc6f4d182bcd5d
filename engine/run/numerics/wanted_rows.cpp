// Patterns against the names of rows, and of the values that have their elements.
#include "engine/run/numerics/wanted_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TraceName;

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [name](const std::string& pattern) { return matches_pattern(name, pattern); });
}

std::string key_of(const TracedAs& as) { return fmt::format("{}:{}", name_of(as.kind), as.name); }

// Of a moment the parameter's.
std::string_view name_in_model(const TracedAs& as) {
  const std::string_view name = as.name;
  const bool of_optimizer = as.kind == TraceKind::kState && name.starts_with(kOwnPrefix);
  return of_optimizer ? name.substr(name.find('/') + 1) : name;
}

}  // namespace

void check_values(const NumericsRequest& request, const Stages& stages) {
  if (request.values.empty()) return;
  std::vector<std::string> names;
  const Graph& model = stages.front().graph;
  for (const ValueId id : model.live_values()) names.push_back(model.value(id).name);
  for (const std::string& pattern : request.values) {
    const auto has_it = [&](const std::string& name) { return matches_pattern(name, pattern); };
    if (std::ranges::any_of(names, has_it)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--record-values: no value of the model is '{}'", printable(pattern)))
        .hint(nearest_hint(pattern, names));
  }
}

void WantedRows::know(const std::vector<TraceName>& names) {
  for (const TraceName& name : names) {
    if (name.row.empty()) continue;
    const std::string_view value = std::string_view(name.value).substr(name.value.find(':') + 1);
    if (matches_any(value, full_)) full_keys_.insert(name.row);
    if (matches_any(value, values_)) value_keys_.insert(name.row);
  }
}

bool WantedRows::has(const TracedAs& as) const {
  if (values_.empty() || as.kind == TraceKind::kInput || as.kind == TraceKind::kLoss) return true;
  if (as.kind == TraceKind::kOwn) return false;
  return matches_any(name_in_model(as), values_) || value_keys_.contains(key_of(as));
}

bool WantedRows::has_elements(const TracedAs& as) const {
  return matches_any(as.name, full_) || full_keys_.contains(key_of(as));
}

std::vector<TraceName> WantedRows::recorded(std::vector<TraceName> names) const {
  if (values_.empty()) return names;
  for (TraceName& name : names) {
    const bool is_there = name.row.starts_with("input:") || value_keys_.contains(name.row);
    if (name.row.empty() || is_there) continue;
    name.row.clear();
    name.reason = "Not recorded: --record-values names others.";
  }
  return names;
}

}  // namespace trainscope
