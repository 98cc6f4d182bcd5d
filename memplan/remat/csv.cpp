// Reads and writes recompute problems and plans; every refusal names the line.
#include "memplan/remat/csv.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memplan/csv_text.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;
using std::string_view;

constexpr string_view kHeader = "id,name,bytes,time,backward,inputs";
constexpr size_t kColumns = 6;
constexpr std::array<string_view, 3> kMoreColumns = {"workspace", "rerun", "layer"};
constexpr size_t kLongestName = 256;

using IndexOfId = std::unordered_map<int64_t, int32_t>;

// Reads one row; `error` stays empty while all is well.
class NodeReader {
 public:
  NodeReader(const IndexOfId& index_of_id, const std::vector<string_view>& more_columns)
      : index_of_id_(index_of_id), more_columns_(more_columns) {}

  RematNode read(string_view line) {
    const std::vector<string_view> fields = split_fields(line);
    const size_t expected = kColumns + more_columns_.size();
    if (fields.size() != expected) {
      refuse("expected " + std::to_string(expected) + " columns, found " +
             std::to_string(fields.size()) + " in " + in_quotes(line) +
             " (separate the inputs by spaces)");
      return {};
    }
    RematNode node{.id = number("id", fields[0]),
                   .name = name(fields[1]),
                   .bytes = number("bytes", fields[2]),
                   .time = number("time", fields[3]),
                   .backward = zero_or_one("backward", fields[4])};
    read_inputs(fields[5], node);
    for (size_t i = 0; i < more_columns_.size(); ++i) {
      read_more(more_columns_[i], fields[kColumns + i], node);
    }
    return node;
  }

  string error = {};

 private:
  void refuse(string message) {
    if (error.empty()) error = std::move(message);
  }

  int64_t number(string_view column, string_view field) {
    int64_t value = 0;
    const string wrong = read_number(field, value);
    if (!wrong.empty()) refuse(string(column) + " " + wrong);
    return value;
  }

  bool zero_or_one(string_view column, string_view field) {
    if (field != "0" && field != "1") {
      refuse(string(column) + " is " + in_quotes(field) + ", expected 0 or 1");
    }
    return field == "1";
  }

  string name(string_view field) {
    const auto forbidden = [](char c) { return (c >= 0 && c < ' ') || c == '"' || c == '\x7f'; };
    if (field.size() > kLongestName) {
      refuse("the name " + in_quotes(field) + " is longer than " + std::to_string(kLongestName) +
             " bytes");
    }
    if (std::any_of(field.begin(), field.end(), forbidden)) {
      refuse("the name " + in_quotes(field) +
             " has a quote or control character (quoting is not supported)");
    }
    return string(field);
  }

  void read_inputs(string_view field, RematNode& node) {
    while (!field.empty() && error.empty()) {
      const string_view word = field.substr(0, field.find(' '));
      field.remove_prefix(std::min(field.size(), word.size() + 1));
      if (word.empty()) continue;
      const auto known = index_of_id_.find(number("input", word));
      if (known == index_of_id_.end()) {
        return refuse("input " + in_quotes(word) + " is no id of an earlier row");
      }
      if (std::find(node.inputs.begin(), node.inputs.end(), known->second) != node.inputs.end()) {
        return refuse("input " + in_quotes(word) + " is named twice");
      }
      node.inputs.push_back(known->second);
    }
  }

  void read_more(string_view column, string_view field, RematNode& node) {
    if (column == "workspace") node.workspace_bytes = number(column, field);
    if (column == "rerun") node.may_rerun = zero_or_one(column, field);
    if (column != "layer" || field.empty()) return;
    const int64_t layer = number(column, field);
    if (layer > std::numeric_limits<int32_t>::max())
      refuse("layer " + in_quotes(field) + " is too large");
    node.layer = static_cast<int32_t>(layer);
  }

  const IndexOfId& index_of_id_;
  const std::vector<string_view>& more_columns_;
};

string at_line(size_t line, const string& message) {
  return "line " + std::to_string(line) + ": " + message;
}

// The columns after the six, or nothing if the header is not one of ours.
std::optional<std::vector<string_view>> read_header(string_view header) {
  if (!header.starts_with(kHeader)) return {};
  std::vector<string_view> columns = split_fields(header);
  columns.erase(columns.begin(), columns.begin() + kColumns);
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto known = std::find(kMoreColumns.begin(), kMoreColumns.end(), columns[i]);
    const auto earlier = columns.begin() + static_cast<std::ptrdiff_t>(i);
    if (known == kMoreColumns.end() || std::find(columns.begin(), earlier, columns[i]) != earlier) {
      return {};
    }
  }
  return columns;
}

}  // namespace

ParsedRemat parse_remat_csv(string_view text) {
  const string_view header = next_line(text);
  const std::optional<std::vector<string_view>> more_columns = read_header(header);
  if (!more_columns) {
    return {.message =
                at_line(1, "the header is " + in_quotes(header) + ", expected '" + string(kHeader) +
                               "' and then any of workspace, rerun, layer")};
  }
  ParsedRemat parsed;
  IndexOfId index_of_id;
  for (size_t line = 2; !text.empty(); ++line) {
    NodeReader reader(index_of_id, *more_columns);
    RematNode node = reader.read(next_line(text));
    if (reader.error.empty() &&
        !index_of_id.emplace(node.id, static_cast<int32_t>(parsed.problem.nodes.size())).second) {
      reader.error = "the id " + std::to_string(node.id) + " was used in an earlier row already";
    }
    if (!reader.error.empty()) return {.message = at_line(line, reader.error)};
    parsed.problem.nodes.push_back(std::move(node));
  }
  if (const std::optional<string> error = find_remat_error(parsed.problem)) {
    return {.message = *error};
  }
  return parsed;
}

string write_remat_csv(const RematProblem& problem) {
  string text = string(kHeader) + ",workspace,rerun,layer\n";
  for (const RematNode& node : problem.nodes) {
    text += std::to_string(node.id) + "," + node.name + "," + std::to_string(node.bytes) + "," +
            std::to_string(node.time) + (node.backward ? ",1," : ",0,");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0) text += ' ';
      text += std::to_string(problem.nodes[static_cast<size_t>(node.inputs[i])].id);
    }
    text += "," + std::to_string(node.workspace_bytes) + (node.may_rerun ? ",1," : ",0,");
    if (node.layer >= 0) text += std::to_string(node.layer);
    text += '\n';
  }
  return text;
}

ParsedRematPlan parse_remat_plan_csv(const RematProblem& problem, string_view text) {
  IndexOfId index_of_id;
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    index_of_id.emplace(problem.nodes[i].id, static_cast<int32_t>(i));
  }
  ParsedRematPlan parsed;
  for (size_t line = 1; !text.empty(); ++line) {
    const string_view row = next_line(text);
    const std::vector<string_view> fields = split_fields(row);
    if (fields.size() != 2 || (fields[0] != "compute" && fields[0] != "free")) {
      return {.message = at_line(line, "expected compute,ID or free,ID, found " + in_quotes(row))};
    }
    int64_t id = 0;
    const string wrong = read_number(fields[1], id);
    const auto known = index_of_id.find(id);
    if (!wrong.empty() || known == index_of_id.end()) {
      return {.message = at_line(line, "there is no node " + in_quotes(fields[1]))};
    }
    const bool compute = fields[0] == "compute";
    parsed.plan.actions.push_back(
        {.kind = compute ? RematActionKind::kCompute : RematActionKind::kFree,
         .node = known->second});
  }
  return parsed;
}

string write_remat_plan_csv(const RematProblem& problem, const RematPlan& plan) {
  string text;
  for (const RematAction& each : plan.actions) {
    text += each.kind == RematActionKind::kCompute ? "compute," : "free,";
    text += std::to_string(problem.nodes[static_cast<size_t>(each.node)].id) + "\n";
  }
  return text;
}

}  // namespace trainscope::memplan
