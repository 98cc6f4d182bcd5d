// Rows of both plans by ONNX node, without times.
#include "cli/compare/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "profiler/analysis/run_difference.h"

namespace trainscope {
namespace {

using profiler::DifferenceRow;
using profiler::NodeInPlan;
using profiler::RunDifference;

RunDifference plans_apart(const Side& a, const Side& b) {
  return profiler::difference_of(a.without_times(), b.without_times());
}

std::string calls_text(const NodeInPlan& node) {
  if (node.calls == 0) return "none";
  return node.calls == 1 ? printable(node.kernels)
                         : fmt::format("{} x {}", node.calls, printable(node.kernels));
}

}  // namespace

Outcome compare_bytes(const Side& a, const Side& b, std::size_t top) {
  const RunDifference both = plans_apart(a, b);
  Json rows = Json::array();
  std::vector<const DifferenceRow*> others;
  for (const DifferenceRow& row : both.rows) {
    rows.push_back(Json::object({{"name", row.time.name}, {"a", row.a.bytes}, {"b", row.b.bytes}}));
    if (row.a.bytes != row.b.bytes) others.push_back(&row);
  }
  std::string text = fmt::format("arena   A {} bytes, B {} bytes\n", both.arena_a, both.arena_b);
  text += others.empty()
              ? fmt::format("each of {} nodes writes as many bytes in both\n", both.rows.size())
              : fmt::format(
                    "{} of {} nodes write another number of bytes\n{:>14} {:>14} "
                    "{:>14}  node\n",
                    others.size(), both.rows.size(), "A", "B", "B - A");
  for (std::size_t i = 0; i < std::min(top, others.size()); ++i) {
    const DifferenceRow& row = *others[i];
    text += fmt::format("{:>14} {:>14} {:>+14}  {}\n", row.a.bytes, row.b.bytes,
                        row.b.bytes - row.a.bytes, printable(row.time.name));
  }
  return {.facts = Json::object({{"arena_a", both.arena_a},
                                 {"arena_b", both.arena_b},
                                 {"differing", others.size()},
                                 {"rows", std::move(rows)}}),
          .text = std::move(text)};
}

Outcome compare_plans(const Side& a, const Side& b, std::size_t top) {
  RunDifference both = plans_apart(a, b);
  std::ranges::stable_sort(both.rows, {}, [](const DifferenceRow& row) { return row.time.name; });
  Json rows = Json::array();
  std::string lines;
  std::size_t others = 0;
  for (const DifferenceRow& row : both.rows) {
    if (row.a.calls == row.b.calls && row.a.kernels == row.b.kernels) continue;
    if (others++ < top) {
      lines += fmt::format("  {}: A {}, B {}\n", printable(row.time.name), calls_text(row.a),
                           calls_text(row.b));
    }
    const auto side_json = [](const NodeInPlan& node) {
      return Json::object({{"calls", node.calls}, {"kernels", node.kernels}});
    };
    rows.push_back(
        Json::object({{"name", row.time.name}, {"a", side_json(row.a)}, {"b", side_json(row.b)}}));
  }
  const std::string found =
      others == 0
          ? fmt::format("plans   each of {} nodes has the same kernels in both\n", both.rows.size())
          : fmt::format("plans   {} of {} nodes have other kernels or calls\n", others,
                        both.rows.size());
  return {.facts = Json::object(
              {{"nodes", both.rows.size()}, {"differing", others}, {"rows", std::move(rows)}}),
          .text = found + lines};
}

}  // namespace trainscope
