// Padding rows by the arguments of embeddings, detached values by nodes and by arguments whose node
// the exporter left out.
#include "engine/onnx/initializers/gradient_stops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/onnx/initializers/hidden_calls.h"
#include "engine/onnx/initializers/program_calls.h"

namespace trainscope {
namespace {

constexpr std::string_view kKeep =
    "export it as it is: torch.onnx.export(model, args, \"model.onnx\", dynamo=True, "
    "optimize=False)";

class GradientStops {
 public:
  explicit GradientStops(ModelEdit& edit) : edit_(edit), calls_(edit.model().marks) {
    for (const NodeMarks& node : edit.model().marks.nodes) present_.insert(node.result);
  }

  void run() {
    for (int i = 0; i < edit_.node_count(); ++i) {
      find_padding(i);
      find_detach(i);
    }
    for (const ProgramCall& call : calls_.calls()) find_detached_arguments(call);
    add_remark_of_detach();
  }

 private:
  // An input of one of a call's nodes.
  struct Read {
    int node = 0;
    int slot = 0;
    std::string name;
  };

  const NodeMarks& marks(int node) const {
    return edit_.model().marks.nodes[static_cast<std::size_t>(node)];
  }
  bool is_left_out(const std::string& argument) const {
    return is_detached(argument) && !present_.contains(argument);
  }

  void find_padding(int i);
  void find_detach(int i);
  void find_detached_arguments(const ProgramCall& call);
  std::vector<Read> reads_of(const ProgramCall& call) const;
  bool stop_by_position(const ProgramCall& call, const std::vector<Read>& reads);
  bool stop_by_name(const ProgramCall& call, const std::vector<Read>& reads);
  bool may_be(const std::string& argument, const std::string& input) const;
  bool is_unknown(const std::string& argument) const;
  void stop(const Read& read);
  void add_remark_of_detach();

  ModelEdit& edit_;
  ProgramCalls calls_;
  std::set<std::string, std::less<>> present_;  // results of calls that have a node
  std::vector<std::string> stopped_;            // nodes
};

// Only the lookup with the mark is meant: a tied layer, or a lookup without it, trains the row.
void GradientStops::find_padding(int i) {
  const pb::NodeProto& node = edit_.node(i);
  if (node.op_type() != "Gather" || node.input_size() != 2) return;
  if (marks(i).by_frequency) {
    edit_.model().faults.push_back(
        {.message = fmt::format("the embedding at '{}' scales its gradients by how often a row is "
                                "read (scale_grad_by_freq), which is not done here",
                                printable(node.name())),
         .hint = "make it without scale_grad_by_freq, and export again",
         .stays = true});
  }
  if (!marks(i).padding_row) return;
  const int table = edit_.find(node.input(0));
  const std::int64_t axis = static_cast<std::int64_t>(attribute_number(node, "axis", 0));
  const bool fits = table < 0 || (edit_.type(table).shape.rank > 0 &&
                                  *marks(i).padding_row < edit_.type(table).shape[0]);
  if (axis != 0 || !fits) {
    edit_.model().faults.push_back(
        {.message = fmt::format("the text of the call at '{}' names row {} as its padding_idx, and "
                                "the node takes no such row",
                                printable(node.name()), *marks(i).padding_row),
         .hint = std::string(kKeep),
         .stays = true});
    return;
  }
  edit_.model().padding_rows.emplace(node.output(0), *marks(i).padding_row);
  edit_.model().remarks.push_back(fmt::format("row {} of '{}' learns nothing at '{}': padding_idx",
                                              *marks(i).padding_row, printable(node.input(0)),
                                              printable(node.name())));
}

void GradientStops::find_detach(int i) {
  const pb::NodeProto& node = edit_.node(i);
  if (node.op_type() != "Identity" || !marks(i).function.starts_with("aten.detach")) return;
  if (node.input_size() == 1) stop({.node = i, .slot = 0, .name = node.input(0)});
}

// Inputs that come from outside of the call, without numbers that are not trained anyway.
std::vector<GradientStops::Read> GradientStops::reads_of(const ProgramCall& call) const {
  std::set<std::string, std::less<>> own;
  std::vector<Read> reads;
  for (int node : call.nodes) {
    const pb::NodeProto& proto = edit_.node(node);
    for (int slot = 0; slot < proto.input_size(); ++slot) {
      const std::string& name = proto.input(slot);
      const bool constant = edit_.find(name) >= 0 && calls_.find_target(name) == nullptr &&
                            !calls_.is_of_parameter(name);
      if (name.empty() || constant || own.contains(name)) continue;
      reads.push_back({.node = node, .slot = slot, .name = name});
    }
    own.insert(proto.output().begin(), proto.output().end());
  }
  return reads;
}

// Whether the input of a node may be that argument, which is there. Where the exporter made a
// constant of a parameter, or merged two, the input has another name.
bool GradientStops::may_be(const std::string& argument, const std::string& input) const {
  if (argument == input) return true;
  if (const ProgramInput* tensor = calls_.find_input(argument); tensor != nullptr) {
    return tensor->target == input || (!tensor->target.empty() && edit_.find(input) >= 0) ||
           (tensor->target.empty() && edit_.is_input(input));
  }
  if (argument.starts_with("getitem")) return edit_.find(input) < 0;
  return !present_.contains(argument);
}

// Whether an argument has neither a node nor an initializer, though it is not detached: what stands
// for it cannot be told from what stands for a detached one.
bool GradientStops::is_unknown(const std::string& argument) const {
  return !is_left_out(argument) && !present_.contains(argument) && edit_.find(argument) < 0 &&
         calls_.find_input(argument) == nullptr && !argument.starts_with("getitem");
}

// A call of one node that reads its arguments in their order.
bool GradientStops::stop_by_position(const ProgramCall& call, const std::vector<Read>& reads) {
  const std::vector<std::string>& arguments = marks(call.nodes.front()).arguments;
  if (call.nodes.size() != 1 || reads.size() != arguments.size()) return false;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const bool constant = is_unknown(arguments[i]) && edit_.find(reads[i].name) >= 0;
    if (is_unknown(arguments[i]) && !constant) return false;
    if (!is_left_out(arguments[i]) && !may_be(arguments[i], reads[i].name)) return false;
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (is_left_out(arguments[i])) stop(reads[i]);
  }
  return true;
}

// The one input that is none of the other arguments.
bool GradientStops::stop_by_name(const ProgramCall& call, const std::vector<Read>& reads) {
  const std::vector<std::string>& arguments = marks(call.nodes.front()).arguments;
  if (std::ranges::any_of(arguments, [this](const auto& each) { return is_unknown(each); })) {
    return false;
  }
  std::set<std::string> others;
  for (const Read& read : reads) {
    const bool known = std::ranges::any_of(arguments, [&](const std::string& argument) {
      return !is_left_out(argument) && argument == read.name;
    });
    const ProgramInput* input = calls_.find_target(read.name);
    const bool own =
        input != nullptr && std::ranges::find(call.tensors, input) != call.tensors.end();
    if (!known && !own) others.insert(read.name);
  }
  if (others.size() != 1) return false;
  for (const Read& read : reads) {
    if (others.contains(read.name)) stop(read);
  }
  return true;
}

void GradientStops::find_detached_arguments(const ProgramCall& call) {
  const std::vector<std::string>& arguments = marks(call.nodes.front()).arguments;
  if (std::ranges::none_of(arguments, [this](const auto& each) { return is_left_out(each); })) {
    return;
  }
  const std::vector<Read> reads = reads_of(call);
  if (reads.empty()) return;  // detached constants
  if (stop_by_position(call, reads) || stop_by_name(call, reads)) return;
  edit_.model().faults.push_back(
      {.message =
           fmt::format("the module detaches what '{}' reads, and which of its inputs that is "
                       "cannot be told from the file",
                       printable(edit_.node(call.nodes.front()).name())),
       .hint = std::string(kKeep),
       .stays = true});
}

void GradientStops::stop(const Read& read) {
  const pb::NodeProto& node = edit_.node(read.node);
  edit_.model().stopped_inputs[node.output(0)].push_back(read.slot);
  stopped_.push_back(node.name());
}

void GradientStops::add_remark_of_detach() {
  if (stopped_.empty()) return;
  const std::size_t all = stopped_.size();
  constexpr std::size_t kShown = 8;
  stopped_.resize(std::min(all, kShown));
  for (std::string& name : stopped_) name = fmt::format("'{}'", printable(name));
  edit_.model().remarks.push_back(fmt::format(
      "no gradient flows through what the module detaches, at {}{}", join(stopped_, ", "),
      all > kShown ? fmt::format(" and {} more", all - kShown) : ""));
}

}  // namespace

void find_gradient_stops(ModelEdit& edit) { GradientStops(edit).run(); }

void find_mutated_buffers(ModelEdit& edit) {
  const ProgramCalls calls(edit.model().marks);
  std::set<std::string_view> statistics;
  for (const ProgramCall& call : calls.calls()) {
    if (call.function.find("batch_norm") == std::string::npos) continue;
    for (const ProgramInput* input : call.tensors) statistics.insert(input->target);
  }
  std::vector<std::string> names;
  for (const std::string& target : edit.model().marks.mutated) {
    const std::string_view leaf = std::string_view(target).substr(target.rfind('.') + 1);
    if (leaf == "num_batches_tracked" || statistics.contains(target)) continue;
    names.push_back(fmt::format("'{}'", printable(target)));
  }
  if (names.empty()) return;
  const std::size_t all = names.size();
  constexpr std::size_t kShown = 8;
  names.resize(std::min(all, kShown));
  edit.model().notes.push_back(
      {.message = fmt::format(
           "the forward pass changes buffers of the module: {}{}; here they stay "
           "as they are, and what is computed of them may differ from PyTorch's "
           "after the first step",
           join(names, ", "), all > kShown ? fmt::format(" and {} more", all - kShown) : ""),
       .hint = {}});
}

}  // namespace trainscope
