// The roofline of each node, and the file of measured times.
#include "engine/recompute/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;
constexpr std::string_view kHeader = "value,seconds";

[[noreturn]] void bad_row(std::size_t line, std::string_view what) {
  fail(ErrorCode::kBadInput, "line {}: {}", line, what);
}

// "name,1.5e-3": names may hold commas, numbers may not.
void read_row(std::string_view row, std::size_t line,
              std::unordered_map<std::string, double>& seconds) {
  const std::size_t comma = row.rfind(',');
  if (comma == std::string_view::npos) bad_row(line, "a row is VALUE,SECONDS");
  const std::optional<double> value = parse_number(row.substr(comma + 1));
  if (!value || !std::isfinite(*value) || *value < 0) {
    bad_row(line, "the time must be a number of seconds, 0 or more");
  }
  if (!seconds.emplace(row.substr(0, comma), *value).second)
    bad_row(line, "the value is there twice");
}

// Rows of times name a node by the first value that it makes: ops that are split keep it.
const std::string& first_value(const Graph& graph, const Node& node) {
  const auto made = std::ranges::find_if(node.outputs, [](ValueId v) { return v != kNoValue; });
  return graph.value(*made).name;
}

// By the new elements of a state: the state.
std::unordered_map<ValueId, ValueId> states_of(const Graph& graph) {
  std::unordered_map<ValueId, ValueId> states;
  for (const Update& update : graph.updates) states.emplace(update.value, update.state);
  return states;
}

// Bytes of states whose new elements the node writes where the old ones are.
double updated_bytes(const Graph& graph, const Node& node, const OpArgs& args,
                     const std::unordered_map<ValueId, ValueId>& states) {
  double bytes = 0.0;
  if (node.op->in_place == nullptr || states.empty()) return bytes;
  for (const InPlace& pair : node.op->in_place(args)) {
    const auto output = static_cast<std::size_t>(pair.output);
    if (output >= node.outputs.size()) continue;
    const auto state = states.find(node.outputs[output]);
    if (state == states.end()) continue;
    if (node.inputs[static_cast<std::size_t>(pair.input)] != state->second) continue;
    bytes += static_cast<double>(graph.value(state->second).type.bytes());
  }
  return bytes;
}

}  // namespace

std::vector<double> modelled_seconds(const Graph& graph, const Machine& machine) {
  std::vector<double> seconds(graph.node_capacity(), 0.0);
  const std::unordered_map<ValueId, ValueId> states = states_of(graph);
  const double of_copy = machine.memory().copy.all;
  // What a byte in place takes, as a part of one that is copied.
  const double in_place = of_copy / machine.memory().in_place().all;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->is_view) continue;
    NodeArgs args(graph, node);
    const Cost cost = cost_of(*node.op, *args);
    const DType dtype = kernel_dtype(args->inputs, args->outputs);
    const double arithmetic = static_cast<double>(cost.flops) / machine.flops(dtype).all;
    const auto moved = static_cast<double>(saturating_add(cost.bytes_read, cost.bytes_written));
    const double updated = std::min(moved, 2.0 * updated_bytes(graph, node, *args, states));
    const double traffic = (moved - updated * (1.0 - in_place)) / of_copy;
    seconds[static_cast<std::size_t>(id)] =
        machine.seconds_per_call + std::max(arithmetic, traffic);
  }
  return seconds;
}

std::vector<double> read_node_seconds(const std::filesystem::path& path, const Graph& graph) {
  try {
    const std::string text = read_file(path, kMaxFileBytes);
    std::unordered_map<std::string, double> by_name;
    std::size_t line = 0;
    for (std::string_view row : split(text, '\n')) {
      ++line;
      if (line == 1 && trim(row) != kHeader) bad_row(line, "the header must be 'value,seconds'");
      if (line > 1 && !trim(row).empty()) read_row(row, line, by_name);
    }
    std::vector<double> seconds(graph.node_capacity(), 0.0);
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op->is_view) continue;
      const auto found = by_name.find(first_value(graph, node));
      if (found == by_name.end()) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("no time for '{}'", printable(first_value(graph, node))))
            .hint("measure the same model with the same flags");
      }
      seconds[static_cast<std::size_t>(id)] = found->second;
    }
    return seconds;
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
}

void write_node_seconds(const std::filesystem::path& path, const Graph& graph,
                        std::span<const double> seconds) {
  std::string text(kHeader);
  text += '\n';
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->is_view) continue;
    text +=
        fmt::format("{},{:.9g}\n", first_value(graph, node), seconds[static_cast<std::size_t>(id)]);
  }
  write_file_atomic(path, text);
}

}  // namespace trainscope
