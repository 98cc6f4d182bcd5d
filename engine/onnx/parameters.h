// What training does with each initializer of a model, and why.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/import.h"

namespace trainscope {

enum class InitializerRole : std::uint8_t {
  kTrained,
  kFrozen,    // could be trained; patterns or names say otherwise
  kState,     // a running statistic, that each step updates
  kBuffer,    // a tensor of the module that PyTorch does not train
  kConstant,  // a number of the graph: an exponent, a limit, axes; also what nothing reads
};

// "trained", "frozen", "state", "buffer", "constant".
std::string_view name_of(InitializerRole role);

struct InitializerChoice {
  std::string name;
  TensorType type;
  InitializerRole role = InitializerRole::kConstant;
  std::string reason;  // "a mark of the exporter"
};

// Why training would not be what it is in PyTorch, and what to do ("": nothing can be done).
struct ParameterFault {
  std::string message;
  std::string hint;
  bool stays = false;  // whatever names are given to train
  // Where names are given, it counts if one of these parameters is among them; names of PyTorch.
  std::vector<std::string> parameters = {};

  std::string text() const { return hint.empty() ? message : message + "; try: " + hint; }
};

struct ParameterChoices {
  std::vector<InitializerChoice> initializers;  // in the model's order
  std::vector<ParameterFault> faults;           // each forbids training
  std::vector<ParameterFault> notes;            // where training may differ from PyTorch's
  std::vector<std::string> remarks;             // what the file tells and training does
  // Buffers of the module are among what is trained, if it has any: the file does not tell.
  bool buffers_unknown = false;
  // Marks of the exporter decide: they do not tell which parameters PyTorch trains.
  bool by_marks = false;
  // Of a file of PyTorch's exporter, though it does not tell buffers.
  bool of_pytorch = false;
};

// What is said of files of PyTorch's present exporter.
inline constexpr std::string_view kUntoldByMarks =
    "no export tells of requires_grad and torch.no_grad(): a parameter that PyTorch does not train "
    "is marked like the others, --freeze NAME leaves it as it is";

// What is said where buffers_unknown, and the file is one of PyTorch's older exporter.
inline constexpr std::string_view kUntoldByNames =
    "such a file tells nothing of detach(), torch.no_grad(), padding_idx, max_norm and "
    "scale_grad_by_freq either: dynamo=True, optimize=False tells of all but no_grad";

// What is said where buffers_unknown.
inline constexpr std::string_view kBuffersUnknown =
    "the file does not tell buffers from parameters, and trains every float tensor: --freeze NAME "
    "leaves a buffer as it is, --parameters FILE names what to train";

// What the file leaves open of what PyTorch trains, a sentence each.
std::vector<std::string> untold(const ParameterChoices& choices);

// kUsage for a pattern or name that matches no initializer.
ParameterChoices choose_parameters(const OnnxModel& model, const ImportOptions& options);

// What is trained, and may be a buffer of the module as well: the file does not tell.
std::set<std::string, std::less<>> unmarked_parameters(const OnnxModel& model,
                                                       const ImportOptions& options);

// kBadInput, with every fault in one report.
void require_trainable(const OnnxModel& model, const ImportOptions& options);

// Where a parameter of the module is, by its name in PyTorch.
struct ParameterPlace {
  std::string initializer;  // of its own name, of another name that it is tied to, or its transpose
  bool unread = false;      // the module has it, the forward pass does not need it
};
// Nothing there when the model has no such parameter.
ParameterPlace find_parameter(const OnnxModel& model, const std::string& name);

// What the exporter had merged, folded or left out and is an initializer again.
struct RestoredInitializer {
  std::string name;
  std::string from;  // what stood for it in the file; "": nothing
  std::string how;   // "merged with 'ln1.weight', whose elements were equal"
};
const std::vector<RestoredInitializer>& restored_initializers(const OnnxModel& model);

}  // namespace trainscope
