// What a call read in PyTorch by the names in its text, against what its nodes read.
#include "engine/onnx/initializers/hidden_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {
namespace {

constexpr std::string_view kKeepCalls =
    "export it as it is: torch.onnx.export(model, args, \"model.onnx\", dynamo=True, "
    "optimize=False)";

// Ops through whose results no gradient flows.
bool ends_gradient(std::string_view op) {
  constexpr std::array<std::string_view, 14> kEnds = {
      "Shape",          "Size", "ArgMax",      "ArgMin", "NonZero", "Equal", "Greater",
      "GreaterOrEqual", "Less", "LessOrEqual", "Not",    "And",     "Or",    "IsNaN"};
  return std::ranges::find(kEnds, op) != kEnds.end();
}

// One of several results of a call, which has no node of its own.
bool is_part(std::string_view argument) { return function_of(argument) == "getitem"; }

class HiddenCallFinder {
 public:
  HiddenCallFinder(ModelEdit& edit, const ProgramCalls& calls)
      : edit_(edit), calls_(calls), moved_(moved_parameters(edit, calls)) {}

  HiddenCalls run() {
    find_learned();
    for (const ProgramCall& call : calls_.calls()) {
      const auto& arguments = arguments_of(call);
      for (const std::string& each : std::set<std::string>(arguments.begin(), arguments.end())) {
        ++named_users_[each];
      }
    }
    for (const ProgramCall& call : calls_.calls()) inspect(call);
    inspect_parts();
    inspect_outputs();
    for (const auto& [value, results] : stands_for_) {
      if (results.size() > 1) add_parameters_before(value);
    }
    report();
    return std::move(found_);
  }

 private:
  const std::vector<std::string>& arguments_of(const ProgramCall& call) const {
    return edit_.model().marks.nodes[static_cast<std::size_t>(call.nodes.front())].arguments;
  }
  void find_learned();
  void inspect(const ProgramCall& call);
  std::vector<std::string> missing_of(const ProgramCall& call) const;
  // Names of values, in the order of the slots, that the call's nodes read from outside of it;
  // `constants` counts the slots of numbers that are not marked.
  std::vector<std::string> reads_of(const ProgramCall& call, std::size_t& constants) const;
  std::int64_t count_named(const std::vector<std::string>& arguments,
                           const std::string& value) const;
  void inspect_parts();
  void inspect_outputs();
  bool hides(const ProgramCall& call, const std::vector<std::string>& reads, std::size_t missing,
             std::size_t constants) const;
  const NodeMarks* producer_of(const std::string& value) const;
  int hidden_users(const std::string& value) const;
  void add_parameters_before(const std::string& value);
  bool detaches() const;
  void report();

  ModelEdit& edit_;
  const ProgramCalls& calls_;
  std::set<std::string> moved_;
  std::unordered_map<std::string, int> maker_;        // nodes by value
  std::unordered_map<std::string, int> named_users_;  // calls of the file that name a result
  std::unordered_set<std::string> learned_;           // values that depend on parameters
  std::unordered_set<std::string> before_merged_;     // values whose parameters are known
  // By value: the results that calls name where they read it.
  std::map<std::string, std::set<std::string>> stands_for_;
  HiddenCalls found_;
};

void HiddenCallFinder::find_learned() {
  for (int i = 0; i < edit_.node_count(); ++i) {
    const pb::NodeProto& node = edit_.node(i);
    const bool learns = std::ranges::any_of(node.input(), [&](const std::string& name) {
      const ProgramInput* input = calls_.find_target(name);
      return learned_.contains(name) || calls_.is_of_parameter(name) ||
             (input != nullptr && input->kind == "PARAMETER");
    });
    for (const std::string& output : node.output()) {
      maker_.emplace(output, i);
      if (learns && !ends_gradient(node.op_type())) learned_.insert(output);
    }
  }
}

// What is detached is found elsewhere (gradient_stops.h); constants are there under their names.
std::vector<std::string> HiddenCallFinder::missing_of(const ProgramCall& call) const {
  std::vector<std::string> missing;
  for (const std::string& result : call.missing_results) {
    if (!is_detached(result) && edit_.find(result) < 0) missing.push_back(result);
  }
  return missing;
}

std::vector<std::string> HiddenCallFinder::reads_of(const ProgramCall& call,
                                                    std::size_t& constants) const {
  std::unordered_set<std::string_view> own;
  std::vector<std::string> reads;
  for (int i : call.nodes) {
    const pb::NodeProto& node = edit_.node(i);
    for (const std::string& name : node.input()) {
      const bool moved = moved_.contains(name);
      if (moved || (edit_.find(name) >= 0 && calls_.find_target(name) == nullptr)) ++constants;
      if (!moved && !own.contains(name) && maker_.contains(name)) reads.push_back(name);
    }
    own.insert(node.output().begin(), node.output().end());
  }
  return reads;
}

const NodeMarks* HiddenCallFinder::producer_of(const std::string& value) const {
  const auto made = maker_.find(value);
  if (made == maker_.end()) return nullptr;
  return &edit_.model().marks.nodes[static_cast<std::size_t>(made->second)];
}

// How many arguments of a call are a value.
std::int64_t HiddenCallFinder::count_named(const std::vector<std::string>& arguments,
                                           const std::string& value) const {
  const NodeMarks* producer = producer_of(value);
  return std::ranges::count_if(arguments, [&](const std::string& argument) {
    return argument == value || (producer != nullptr && argument == producer->result);
  });
}

// Whether a value is read that no argument names, or one more often than arguments name it; or,
// where several nodes stand for the call, arguments are missing that are no constants either.
bool HiddenCallFinder::hides(const ProgramCall& call, const std::vector<std::string>& reads,
                             std::size_t missing, std::size_t constants) const {
  const std::vector<std::string>& arguments = arguments_of(call);
  std::set<std::string> unnamed;
  for (const std::string& read : reads) {
    const std::int64_t named = count_named(arguments, read);
    if (named == 0) {
      unnamed.insert(read);
    } else if (call.nodes.size() == 1 && std::ranges::count(reads, read) > named) {
      return true;
    }
  }
  if (std::ssize(unnamed) > std::ranges::count_if(arguments, is_part)) return true;
  return call.nodes.size() > 1 && missing > constants;
}

// Results of several values: where the program names more of them than the file has, some of the
// calls that made them were merged.
void HiddenCallFinder::inspect_parts() {
  std::set<std::string> parts;
  std::set<std::string> values;
  std::vector<std::string> readers;
  bool learned = false;
  for (const ProgramCall& call : calls_.calls()) {
    const std::vector<std::string>& arguments = arguments_of(call);
    if (std::ranges::none_of(arguments, is_part)) continue;
    std::ranges::copy_if(arguments, std::inserter(parts, parts.end()), [this](const auto& each) {
      return is_part(each) && edit_.find(each) < 0;
    });
    std::size_t constants = 0;
    for (const std::string& read : reads_of(call, constants)) {
      if (!is_part(read) && count_named(arguments, read) > 0) continue;
      values.insert(read);
      learned = learned || learned_.contains(read);
    }
    readers.push_back(edit_.node(call.nodes.front()).name());
  }
  if (!learned || parts.size() <= values.size()) return;
  found_.readers.insert(found_.readers.end(), readers.begin(), readers.end());
  found_.results.insert(found_.results.end(), parts.begin(), parts.end());
  for (const std::string& value : values) add_parameters_before(value);
}

// A result that the model gives, and no node computes under that name.
void HiddenCallFinder::inspect_outputs() {
  std::set<std::string> results;
  for (const NodeMarks& node : edit_.model().marks.nodes) results.insert(node.result);
  const bool learned =
      std::ranges::any_of(edit_.model().proto.graph().output(),
                          [this](const auto& output) { return learned_.contains(output.name()); });
  for (const std::string& output : edit_.model().marks.outputs) {
    if (!learned || results.contains(output) || is_part(output) || edit_.find(output) >= 0)
      continue;
    found_.results.push_back(output);
    found_.readers.emplace_back("the output of the model");
  }
}

// How many calls of the program that read the value's result no longer have a node that names it.
int HiddenCallFinder::hidden_users(const std::string& value) const {
  const NodeMarks* producer = producer_of(value);
  if (producer == nullptr) return 0;
  const auto named = named_users_.find(producer->result);
  return producer->users - (named == named_users_.end() ? 0 : named->second);
}

// Those of the call that made the value, and of the calls before it, as far as these may have been
// merged too: until a result has readers that are not in the file.
void HiddenCallFinder::add_parameters_before(const std::string& value) {
  std::vector<std::string> open = {value};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto made = maker_.find(name);
    if (made == maker_.end() || !before_merged_.insert(name).second) continue;
    for (const std::string& argument : producer_of(name)->arguments) {
      const ProgramInput* input = calls_.find_input(argument);
      if (input != nullptr && input->kind == "PARAMETER") found_.merged.insert(input->target);
    }
    for (const std::string& before : edit_.node(made->second).input()) {
      const NodeMarks* producer = producer_of(before);
      const bool within = producer != nullptr && producer->result == producer_of(name)->result;
      if (within || hidden_users(before) <= 0) open.push_back(before);
    }
  }
}

void HiddenCallFinder::inspect(const ProgramCall& call) {
  const std::vector<std::string> missing = missing_of(call);
  if (missing.empty()) return;
  std::size_t constants = 0;
  std::vector<std::string> reads = reads_of(call, constants);
  std::erase_if(reads, [this](const std::string& read) { return !learned_.contains(read); });
  if (reads.empty() || !hides(call, reads, missing.size(), constants)) return;
  found_.readers.push_back(edit_.node(call.nodes.front()).name());
  found_.results.insert(found_.results.end(), missing.begin(), missing.end());
  for (const std::string& read : reads) {
    const NodeMarks* producer = producer_of(read);
    if (count_named(arguments_of(call), read) == 0) {
      stands_for_[read].insert(missing.begin(), missing.end());
    }
    const bool merged = producer != nullptr && std::ranges::any_of(missing, [&](const auto& each) {
                          return function_of(each) == function_of(producer->result);
                        });
    if (merged) add_parameters_before(read);
  }
}

// Whether anything in the file shows that the module detaches values.
bool HiddenCallFinder::detaches() const {
  return std::ranges::any_of(edit_.model().marks.nodes, [](const NodeMarks& node) {
    return node.source_detaches || is_detached(node.result) ||
           std::ranges::any_of(node.arguments, is_detached);
  });
}

void HiddenCallFinder::report() {
  if (found_.readers.empty()) return;
  const auto shown = [](std::vector<std::string> names) {
    const std::size_t all = names.size();
    constexpr std::size_t kShown = 6;
    names.resize(std::min(all, kShown));
    for (std::string& name : names) name = fmt::format("'{}'", printable(name));
    return join(names, ", ") + (all > kShown ? fmt::format(" and {} more", all - kShown) : "");
  };
  std::string text = fmt::format(
      "the exporter left out calls that change no number, or merged equal ones: {}, "
      "which {} read",
      shown(found_.results), shown(found_.readers));
  if (detaches()) {
    edit_.model().faults.push_back(
        {.message = text + ". The module detaches values: whether these are detached cannot be "
                           "told from the file",
         .hint = std::string(kKeepCalls),
         .stays = true});
    return;
  }
  edit_.model().notes.push_back(
      {.message = text + "; where one of them is of detached values, or a lookup with another "
                         "padding_idx, PyTorch trains otherwise",
       .hint = std::string(kKeepCalls)});
}

}  // namespace

bool is_detached(std::string_view result) { return function_of(result) == "detach"; }

std::set<std::string> moved_parameters(const ModelEdit& edit, const ProgramCalls& calls) {
  std::set<std::string> values;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (!edit.marks(i).result.empty() || node.input_size() == 0 || node.output_size() != 1)
      continue;
    const bool constants = std::ranges::all_of(
        node.input(), [&edit](const std::string& name) { return edit.find(name) >= 0; });
    if (constants && calls.find_target(node.input(0)) != nullptr) values.insert(node.output(0));
  }
  return values;
}

HiddenCalls find_hidden_calls(ModelEdit& edit, const ProgramCalls& calls) {
  return HiddenCallFinder(edit, calls).run();
}

}  // namespace trainscope
