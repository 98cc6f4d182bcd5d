// Calls of the exported program, by the name of their result.
#include "engine/onnx/initializers/program_calls.h"

#include <algorithm>

namespace trainscope {

ProgramCalls::ProgramCalls(const ExporterMarks& marks)
    : inputs_(marks.program), folded_from_(marks.folded_from) {
  for (const ProgramInput& input : inputs_) {
    by_name_.emplace(input.name, &input);
    if (!input.target.empty()) by_target_.emplace(input.target, &input);
  }
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < marks.nodes.size(); ++i) {
    const NodeMarks& node = marks.nodes[i];
    if (node.result.empty()) continue;
    auto [found, fresh] = index.emplace(node.result, calls_.size());
    if (fresh) {
      calls_.push_back({.result = node.result,
                        .module = node.module,
                        .function = node.function,
                        .nodes = {},
                        .tensors = {},
                        .missing_results = {}});
    }
    calls_[found->second].nodes.push_back(static_cast<int>(i));
  }
  for (ProgramCall& call : calls_) {
    for (const std::string& name : marks.nodes[static_cast<std::size_t>(call.nodes[0])].arguments) {
      auto input = by_name_.find(name);
      if (input == by_name_.end()) {
        // One of several results has no node of its own.
        const bool part = name.starts_with("getitem");
        if (part || index.contains(name)) continue;
        call.missing_results.push_back(name);
        missing_.insert(name);
        continue;
      }
      if (input->second->target.empty()) continue;
      read_.insert(input->second->name);
      if (std::ranges::find(call.tensors, input->second) == call.tensors.end()) {
        call.tensors.push_back(input->second);
      }
    }
  }
}

const ProgramInput* ProgramCalls::find_target(std::string_view target) const {
  auto found = by_target_.find(target);
  return found == by_target_.end() ? nullptr : found->second;
}

const ProgramInput* ProgramCalls::find_input(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

bool ProgramCalls::is_user_input(const std::string& name) const {
  const ProgramInput* input = find_input(name);
  return input != nullptr && input->kind == "USER_INPUT";
}

bool ProgramCalls::is_of_parameter(const std::string& constant) const {
  const auto sources = folded_from_.find(constant);
  return sources != folded_from_.end() &&
         std::ranges::any_of(sources->second, [this](const std::string& name) {
           const ProgramInput* input = find_target(name);
           return input != nullptr && input->kind == "PARAMETER";
         });
}

}  // namespace trainscope
