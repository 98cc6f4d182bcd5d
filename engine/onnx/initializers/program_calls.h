// The nodes of a model by the PyTorch call that they are part of, and what these calls read.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/onnx/exporter_marks.h"

namespace trainscope {

struct ProgramCall {
  std::string result;
  std::string module;
  std::string function;
  std::vector<int> nodes;                    // of the model, in order
  std::vector<const ProgramInput*> tensors;  // parameters and buffers that it reads, in order
  std::vector<std::string> missing_results;  // arguments that no node of the model computes
};

// Has inputs of its own, to which its answers lead.
class ProgramCalls {
 public:
  explicit ProgramCalls(const ExporterMarks& marks);
  ProgramCalls(const ProgramCalls&) = delete;
  ProgramCalls& operator=(const ProgramCalls&) = delete;

  const std::vector<ProgramCall>& calls() const { return calls_; }
  // The parameter or buffer of that name in PyTorch, or null.
  const ProgramInput* find_target(std::string_view target) const;
  // The input of that name in the text of calls, or null.
  const ProgramInput* find_input(std::string_view name) const;
  bool is_user_input(const std::string& name) const;
  // Whether the exporter computed that constant of a parameter, and wrote it down.
  bool is_of_parameter(const std::string& constant) const;
  // Whether a call that is still in the model reads it.
  bool is_read(const ProgramInput& input) const { return read_.contains(input.name); }
  // Whether a call that is still in the model reads a result of that name, which no node computes.
  bool is_missing_result(const std::string& name) const { return missing_.contains(name); }

 private:
  const std::vector<ProgramInput> inputs_;
  const std::unordered_map<std::string, std::vector<std::string>> folded_from_;  // as in the marks
  std::vector<ProgramCall> calls_;
  std::unordered_map<std::string_view, const ProgramInput*> by_name_;
  std::unordered_map<std::string_view, const ProgramInput*> by_target_;
  std::unordered_set<std::string_view> read_;  // names of inputs
  std::unordered_set<std::string> missing_;
};

}  // namespace trainscope
