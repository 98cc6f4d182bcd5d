// The section on numbers: tensors against the truth and against other runs, and loss curves beside
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "profiler/numerics/tensor_comparison.h"
#include "profiler/report/charts.h"
#include "profiler/report/heat_map.h"
#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kMostRows = 300;  // of values

// A comparison's cell, before rows and columns have places.
struct Compared {
  std::string column;  // its group
  std::int64_t step = 0;
  std::size_t row = 0;  // A's
  double error = 0.0;
  double over = 0.0;  // limit
  bool is_beyond = false;
  std::string title;
};

double shown_error(const ComparedTensor& tensor) {
  const bool has_number = tensor.verdict <= TensorVerdict::kBeyond;
  return has_number ? tensor.relative : std::numeric_limits<double>::infinity();
}

std::string limit_text(const ComparedTensor& tensor) {
  return tensor.limit ? fmt::format("{:.2e}", *tensor.limit) : "none";
}

void add_pair(const Trace& a, const TensorComparison& both, const std::string& group,
              std::vector<Compared>& cells) {
  for (const ComparedTensor& tensor : both.tensors) {
    const TraceRow& row = a.rows()[tensor.row_a];
    cells.push_back(
        {.column = group,
         .step = row.step,
         .row = tensor.row_a,
         .error = shown_error(tensor),
         .over = is_fault(tensor.verdict) ? 1.0 + tensor.over_limit() : tensor.over_limit(),
         .is_beyond = is_fault(tensor.verdict),
         .title =
             fmt::format("{}, step {}, {}: error {:.2e}, limit {}, {}", group, row.step, tensor.key,
                         tensor.relative, limit_text(tensor), name_of(tensor.verdict))});
  }
}

// Of another run at the step that the truth is known of.
void add_truth(const Trace& a, const ReportPeer& peer, std::vector<Compared>& cells) {
  for (const ComparedTensor& tensor : peer.tensors->tensors) {
    if (!tensor.error_b) continue;
    const std::int64_t step = a.rows()[tensor.row_a].step;
    cells.push_back({.column = fmt::format("{} - f64", peer.name),
                     .step = step,
                     .row = tensor.row_a,
                     .error = *tensor.error_b,
                     .title = fmt::format("{} from f64, step {}, {}: error {:.2e}", peer.name, step,
                                          tensor.key, *tensor.error_b)});
  }
}

std::vector<Compared> all_cells(const ReportInput& input) {
  std::vector<Compared> cells;
  const Trace& a = *input.trace;
  if (const auto truth = a.oracle()) {
    add_pair(a, compare_tensors(a, *truth), "this run - f64", cells);
  }
  for (const ReportPeer& peer : input.peers) {
    if (!peer.tensors) continue;
    add_truth(a, peer, cells);
    add_pair(a, *peer.tensors, fmt::format("this run - {}", peer.name), cells);
  }
  return cells;
}

// A's values in the order of execution: what the map has rows for. Of very many those most over
// their limits.
class MapRows {
 public:
  MapRows(const Trace& a, const std::vector<Compared>& cells) {
    std::map<std::string, double> over;
    for (const Compared& cell : cells) {
      double& most = over[a.rows()[cell.row].key()];
      most = std::max(most, cell.over);
    }
    all_ = over.size();
    std::vector<double> sorted;
    for (const auto& [name, most] : over) sorted.push_back(most);
    std::ranges::sort(sorted, std::ranges::greater());
    const double least = sorted.size() > kMostRows ? sorted[kMostRows - 1] : -1.0;
    for (const TracePhase phase :
         {TracePhase::kInput, TracePhase::kForward, TracePhase::kBackward, TracePhase::kUpdate}) {
      for (const TraceRow& row : a.rows()) {
        const std::string name = row.key();
        const auto found = over.find(name);
        const bool wanted = row.phase == phase && found != over.end() && found->second >= least;
        if (!wanted || places_.size() == kMostRows) continue;
        if (places_.emplace(name, names_.size()).second) names_.push_back(name);
      }
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  std::size_t all() const { return all_; }
  // Beyond the rows: it has none.
  std::size_t place(const TraceRow& row) const {
    const auto found = places_.find(row.key());
    return found == places_.end() ? names_.size() : found->second;
  }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> names_;
  std::size_t all_ = 0;
};

std::string errors_picture(const ReportInput& input) {
  const Trace& a = *input.trace;
  const std::vector<Compared> cells = all_cells(input);
  if (cells.empty()) return {};
  const MapRows rows(a, cells);
  HeatMap map{.title = "Errors of values by step", .rows = rows.names()};
  std::vector<std::string> groups;  // in the order of the cells
  std::map<std::tuple<std::size_t, std::int64_t>, std::size_t> columns;
  for (const Compared& cell : cells) {
    auto group = std::ranges::find(groups, cell.column);
    if (group == groups.end()) group = groups.insert(groups.end(), cell.column);
    columns.emplace(std::tuple(static_cast<std::size_t>(group - groups.begin()), cell.step), 0);
  }
  for (auto& [key, place] : columns) {
    place = map.columns.size();
    map.columns.push_back(
        {.group = groups[std::get<0>(key)], .name = std::to_string(std::get<1>(key))});
  }
  // Of several micro-batches the one with the largest error.
  std::map<std::pair<std::size_t, std::size_t>, HeatCell> by_place;
  for (const Compared& cell : cells) {
    const std::size_t row = rows.place(a.rows()[cell.row]);
    if (row == rows.names().size()) continue;
    const auto group =
        static_cast<std::size_t>(std::ranges::find(groups, cell.column) - groups.begin());
    const std::size_t column = columns.at({group, cell.step});
    HeatCell& kept = by_place[{row, column}];
    if (!kept.title.empty() && kept.error >= cell.error) continue;
    kept = {.row = row,
            .column = column,
            .error = cell.error,
            .is_beyond = cell.is_beyond,
            .title = cell.title};
  }
  for (auto& [place, cell] : by_place) map.cells.push_back(std::move(cell));
  std::string text = heat_map(map);
  if (rows.all() > rows.names().size()) {
    text += element("p", {},
                    fmt::format("The {} values most over their limits, of {}.", rows.names().size(),
                                rows.all()));
  }
  return text;
}

std::string losses_picture(const ReportInput& input) {
  LineChart chart{.title = "Loss, beside other runs", .x_label = "step", .y_label = "loss"};
  Line own{.name = "this run", .color = 0};
  for (const StepRecord& step : input.metrics.steps) {
    own.points.emplace_back(static_cast<double>(step.step), step.loss);
  }
  chart.lines.push_back(std::move(own));
  constexpr int kColors[] = {4, 5};
  for (std::size_t i = 0; i < input.peers.size(); ++i) {
    Line line{.name = input.peers[i].name, .color = kColors[i % std::size(kColors)]};
    for (const auto& [step, loss] : input.peers[i].losses) {
      line.points.emplace_back(static_cast<double>(step), loss);
    }
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  return chart.lines.size() > 1 ? line_chart(chart) : std::string();
}

std::string verdict_of(const Trace& a, const ReportPeer& peer) {
  if (!peer.tensors) return escaped(peer.no_tensors, 400);
  if (!peer.tensors->first) {
    return fmt::format("{} tensors, none beyond its limit", peer.tensors->tensors.size());
  }
  const ComparedTensor& tensor = peer.tensors->tensors[*peer.tensors->first];
  const TraceRow& row = a.rows()[tensor.row_a];
  return fmt::format("{} of {} tensors are beyond their limits; the first: step {}, {}, ",
                     peer.tensors->faults(), peer.tensors->tensors.size(), row.step,
                     name_of(row.phase)) +
         element("code", {}, escaped(tensor.key)) +
         escaped(row.op.empty() ? "" : fmt::format(" of {} '{}'", row.op, row.node), 400);
}

std::string verdicts(const ReportInput& input) {
  HtmlTable table({{"run"}, {"tensors"}});
  for (const ReportPeer& peer : input.peers) {
    table.add({escaped(peer.name),
               input.trace ? verdict_of(*input.trace, peer) : escaped(peer.no_tensors, 400)});
  }
  return table.empty() ? std::string() : table.text();
}

}  // namespace

std::string numbers_section(const ReportInput& input) {
  std::string text = verdicts(input) + losses_picture(input);
  if (input.trace) text += errors_picture(input);
  return text;
}

}  // namespace trainscope::profiler
