// What each call of the program read, against what its nodes read.
#include "engine/onnx/initializers/restore_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/initializers/folded.h"

namespace trainscope {
namespace {

bool is_parameter(const ProgramInput* input) { return input->kind == "PARAMETER"; }
bool has_bias(const std::string& op) {
  return op == "Gemm" || op == "Conv" || op == "ConvTranspose";
}

bool is_all(const Tensor& tensor, float number) {
  if (tensor.dtype() != DType::kF32) return false;
  return std::ranges::all_of(tensor.values<float>(), [number](float x) { return x == number; });
}

// How many biases a node of these weights has; -1 when its op scales them.
std::int64_t bias_size(const pb::NodeProto& node, const Shape& weight) {
  if (node.op_type() == "Conv") return weight[0];
  if (node.op_type() == "ConvTranspose") {
    const double groups = attribute_number(node, "group", 1);
    const bool fits = groups >= 1.0 && groups <= static_cast<double>(weight[0]);
    return fits ? weight[1] * static_cast<std::int64_t>(groups) : -1;
  }
  if (attribute_number(node, "beta", 1.0) != 1.0) return -1;
  return attribute_number(node, "transB", 0) != 0 ? weight[0] : weight[1];
}

// How the nodes of a call read what it is given.
enum class ReadingOrder : std::uint8_t { kAsGiven, kFirstLast, kUnknown };

// Of those that PyTorch's programs call with several parameters. "addmm", "addcmul" and the like
// add their first argument last.
ReadingOrder reading_order(std::string_view function) {
  constexpr std::array<std::string_view, 4> kGiven = {"linear", "conv", "bilinear", "norm"};
  constexpr std::array<std::string_view, 4> kAdding = {"aten.addc", "aten.addm", "aten.addbmm",
                                                       "aten.baddbmm"};
  const auto contains = [&](std::string_view part) {
    return function.find(part) != std::string_view::npos;
  };
  if (std::ranges::any_of(kAdding, [&](auto part) { return function.starts_with(part); })) {
    return ReadingOrder::kFirstLast;
  }
  return std::ranges::any_of(kGiven, contains) ? ReadingOrder::kAsGiven : ReadingOrder::kUnknown;
}

bool is_addend(const pb::NodeProto& node, int slot) {
  return node.op_type() == "Add" || node.op_type() == "Sub" ||
         (node.op_type() == "Gemm" && slot == 2);
}

}  // namespace

void ProgramRestorer::run() {
  for (const ProgramCall& call : calls_.calls()) restore_call(call);
  restore_folded();
  find_folded();
  find_constants_of_parameters();
  add_faults();
  add_notes();
}

bool ProgramRestorer::is_fused_norm(const ProgramCall& call) const {
  if (call.function.find("batch_norm") == std::string::npos) return false;
  bool weights = false;
  for (int node : call.nodes) {
    if (edit_.node(node).op_type() == "BatchNormalization") return false;
    weights = weights || has_bias(edit_.node(node).op_type());
  }
  return weights;
}

// The norm's tensors, and those of the layer that it is now part of: other numbers stand there.
void ProgramRestorer::lose_all(const ProgramCall& call) {
  for (const ProgramInput* input : call.tensors) fused_tensors_.insert(input->target);
  for (int node : call.nodes) {
    for (const std::string& input : edit_.node(node).input()) {
      if (calls_.find_target(input) != nullptr) fused_tensors_.insert(input);
    }
  }
}

void ProgramRestorer::restore_call(const ProgramCall& call) {
  if (is_fused_norm(call)) {
    fused_.push_back(call.module);
    lose_all(call);
    return;
  }
  for (int node : call.nodes) {
    if (edit_.node(node).op_type() != "BatchNormalization") continue;
    if (edit_.node(node).input_size() == 5) return restore_batch_norm(call, node);
  }
  Inputs lost = call.tensors;
  std::vector<Read> others;
  for (Read& read : reads_of(call)) {
    const auto own = std::ranges::find_if(
        lost, [&read](const ProgramInput* input) { return input->target == read.name; });
    if (own == lost.end()) {
      others.push_back(std::move(read));
    } else {
      lost.erase(own);
    }
  }
  if (restore_pairs(call, lost, others)) return;
  std::erase_if(lost, [](const ProgramInput* input) { return !is_parameter(input); });
  if (lost.empty()) return set_apart_constants(call, others);
  if (restore_pairs(call, lost, others)) return;
  if (lost.size() == others.size() + 1 && add_zero_bias(call, *lost.back())) {
    lost.pop_back();
    if (lost.empty() || restore_pairs(call, lost, others)) return;
  }
  // A node that the marks do not tell of may read it for the call: a Transpose put in between.
  std::erase_if(lost, [this](const ProgramInput* input) { return edit_.is_read(input->target); });
  if (lost.empty() || restore_pairs(call, lost, others)) return;
  for (const ProgramInput* input : lost) lost_.push_back(input->target);
  evidence_.push_back(edit_.node(call.nodes.front()).name());
}

// Float initializers at the inputs of the call's nodes, in the order in which the call is given
// them, without what ops of several dimensions bring along: single numbers, and the ones and zeros
// of an InstanceNormalization.
std::vector<ProgramRestorer::Read> ProgramRestorer::reads_of(const ProgramCall& call) const {
  std::vector<Read> reads;
  for (int node : call.nodes) {
    const pb::NodeProto& proto = edit_.node(node);
    for (int slot = 0; slot < proto.input_size(); ++slot) {
      if (!edit_.is_float_initializer(proto.input(slot))) continue;
      Read read{.node = node, .slot = slot, .name = proto.input(slot), .marked = false};
      read.marked = calls_.find_target(read.name) != nullptr;
      const bool single = edit_.type(edit_.find(read.name)).shape.rank == 0;
      if (!read.marked && (single || proto.op_type() == "InstanceNormalization")) continue;
      reads.push_back(std::move(read));
    }
  }
  if (reading_order(call.function) == ReadingOrder::kFirstLast) {
    std::ranges::stable_partition(
        reads, [this](const Read& read) { return is_addend(edit_.node(read.node), read.slot); });
  }
  return reads;
}

// Scale and bias are its parameters, the statistics its buffers, whatever stands for them.
void ProgramRestorer::restore_batch_norm(const ProgramCall& call, int node) {
  constexpr std::array<std::string_view, 2> kConstants = {"scale", "bias"};
  evaluates_ = evaluates_ || call.function.find("no_training") != std::string::npos;
  std::array<const ProgramInput*, 5> wanted{};
  int parameter = 1;
  int buffer = 3;
  for (const ProgramInput* input : call.tensors) {
    int& slot = is_parameter(input) ? parameter : buffer;
    if (slot < (is_parameter(input) ? 3 : 5)) wanted[static_cast<std::size_t>(slot++)] = input;
  }
  for (int slot = 1; slot < 5; ++slot) {
    const std::string name = edit_.node(node).input(slot);
    if (!edit_.is_float_initializer(name)) continue;
    const ProgramInput* input = wanted[static_cast<std::size_t>(slot)];
    if (input != nullptr) {
      const Read read{.node = node, .slot = slot, .name = name, .marked = true};
      if (input->target != name && !set_apart(*input, read)) lost_.push_back(input->target);
    } else if (slot < 3 && calls_.find_target(name) != nullptr) {
      const std::string_view leaf = kConstants[static_cast<std::size_t>(slot - 1)];
      const std::string own = edit_.free_name(fmt::format("{}/{}", edit_.node(node).name(), leaf));
      edit_.copy(edit_.find(name), own, "the exporter made it: the module has none");
      edit_.set_input(node, slot, own);
    }
  }
}

// The merged initializer's elements, under the name of what the call reads.
bool ProgramRestorer::set_apart(const ProgramInput& input, const Read& read) {
  const int from = edit_.find(read.name);
  const int present = edit_.find(input.target);
  if (present >= 0 && edit_.type(present) != edit_.type(from)) return false;
  if (present < 0) {
    if (!edit_.is_free(input.target)) return false;
    edit_.copy(from, input.target,
               fmt::format("merged with '{}', whose elements were equal", printable(read.name)));
    if (is_parameter(&input)) {
      copy_marks(*edit_.model().proto.mutable_graph(), read.name, input.target);
    }
  }
  edit_.set_input(read.node, read.slot, input.target);
  return true;
}

bool ProgramRestorer::restore_pairs(const ProgramCall& call, const Inputs& lost,
                                    const std::vector<Read>& reads) {
  if (lost.empty() || lost.size() != reads.size()) return false;
  const bool one = std::ranges::all_of(
      reads, [&reads](const Read& read) { return read.name == reads.front().name; });
  if (!one && reading_order(call.function) == ReadingOrder::kUnknown) return false;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (!reads[i].marked && !is_parameter(lost[i])) continue;  // a constant of a constant
    const bool restored =
        reads[i].marked ? set_apart(*lost[i], reads[i]) : unfold(call, *lost[i], reads[i]);
    if (restored) continue;
    lost_.push_back(lost[i]->target);
    evidence_.push_back(reads[i].name);
  }
  return true;
}

// A constant that the exporter made of the parameter by moving its elements: the parameter, and a
// node that moves them.
bool ProgramRestorer::unfold(const ProgramCall& call, const ProgramInput& input, const Read& read) {
  const int from = edit_.find(read.name);
  if (!edit_.has_elements(from)) return false;
  const Shape shape = edit_.type(from).shape;
  const std::string& op = edit_.node(read.node).op_type();
  const bool is_transposed = is_folded_transpose(call.function, op, shape.rank);
  const bool vector = is_folded_vector(call.function, shape);
  const SharedTensor folded = edit_.elements(from);
  Tensor elements = is_transposed ? transposed(*folded) : *folded;
  if (vector) elements = std::move(elements).reshaped(Shape{shape.elements()});
  const std::string how = fmt::format("folded into '{}'{}", printable(read.name),
                                      is_transposed ? ", its transpose" : "");
  if (!add_parameter(input, read, std::move(elements), how)) return false;
  if (is_transposed || vector) {
    read_through(input, read, is_transposed ? "Transpose" : "Reshape");
  } else {
    edit_.set_input(read.node, read.slot, input.target);
  }
  return true;
}

// False when the name is taken by something else.
bool ProgramRestorer::add_parameter(const ProgramInput& input, const Read& read, Tensor elements,
                                    const std::string& how) {
  const int present = edit_.find(input.target);
  if (present >= 0) return edit_.equal(present, elements);
  if (!edit_.is_free(input.target)) return false;
  edit_.add(input.target, std::make_shared<const Tensor>(std::move(elements)),
            {.name = input.target, .from = read.name, .how = how});
  return true;
}

// The node reads what `op` makes of the parameter: its transpose, its rows, one plus it, or its
// elements in the shape of the constant that stood there.
void ProgramRestorer::read_through(const ProgramInput& input, const Read& read, std::string_view op,
                                   std::string_view shape_leaf) {
  const Shape shape = edit_.type(edit_.find(read.name)).shape;
  const std::string moved =
      edit_.free_name(fmt::format("{}/{}", input.target, edit_.node(read.node).name()));
  pb::NodeProto node = transpose_node(input.target, moved);
  const auto read_besides = [&](const std::string& name) {
    node.clear_attribute();
    node.set_op_type(std::string(op));
    node.add_input(name);
  };
  if (op == "Gather") {
    read_besides(rows_name(input.target));
  } else if (op == "Add") {
    const std::string one = edit_.free_name(moved + std::string(kOneOfSum));
    edit_.add(one, std::make_shared<const Tensor>(Tensor::scalar(1.0F)),
              {.name = one, .from = read.name, .how = "what is added to the weight"});
    read_besides(one);
  } else if (op != "Transpose") {
    const std::string sizes = edit_.free_name(moved + std::string(shape_leaf));
    edit_.add(sizes, std::make_shared<const Tensor>(Tensor::ints(shape.span())),
              {.name = sizes, .from = read.name, .how = "the shape of the folded constant"});
    read_besides(sizes);
  }
  edit_.insert_before(read.node, std::move(node));
  edit_.set_input(read.node, read.slot, moved);
}

// Exporters leave out a bias that is zero, as fresh ones are.
bool ProgramRestorer::add_zero_bias(const ProgramCall& call, const ProgramInput& input) {
  for (int i : call.nodes) {
    const pb::NodeProto& node = edit_.node(i);
    if (!has_bias(node.op_type()) || node.input_size() < 2) continue;
    if (node.input_size() > 2 && !node.input(2).empty()) continue;
    const int weight = edit_.find(node.input(1));
    if (weight < 0 || edit_.type(weight).shape.rank < 2) continue;
    const std::int64_t size = bias_size(node, edit_.type(weight).shape);
    const int present = edit_.find(input.target);
    const TensorType type{.dtype = edit_.type(weight).dtype, .shape = Shape{size}};
    if (size < 0) return false;
    if (present >= 0 ? edit_.type(present) != type : !edit_.is_free(input.target)) return false;
    if (present < 0) {
      edit_.add(input.target, std::make_shared<const Tensor>(type),
                {.name = input.target, .from = "", .how = "left out by the exporter as zero"});
    }
    edit_.set_input(i, 2, input.target);
    return true;
  }
  return false;
}

// Ones and zeros that the exporter needs where the module has no parameter, merged with a parameter
// that was equal to them.
void ProgramRestorer::set_apart_constants(const ProgramCall& call,
                                          const std::vector<Read>& foreign) {
  if (!call.missing_results.empty()) return;
  for (const Read& read : foreign) {
    const pb::NodeProto& node = edit_.node(read.node);
    const bool takes_them =
        has_bias(node.op_type()) || node.op_type().find("Normalization") != std::string::npos;
    const ProgramInput* own = calls_.find_target(read.name);
    const auto index = static_cast<std::size_t>(read.node);
    if (!edit_.model().marks.nodes[index].rule.empty()) continue;  // perhaps of several calls
    if (!takes_them || read.slot == 0 || own == nullptr) continue;
    if (std::ranges::find(call.tensors, own) != call.tensors.end()) continue;
    const int from = edit_.find(read.name);
    if (!edit_.has_elements(from)) continue;
    const SharedTensor elements = edit_.elements(from);
    if (!is_all(*elements, 0.0F) && !is_all(*elements, 1.0F)) continue;
    const std::string name = edit_.free_name(fmt::format("{}/constant{}", node.name(), read.slot));
    edit_.copy(from, name, "the exporter made it: the module has none");
    edit_.set_input(read.node, read.slot, name);
  }
}

}  // namespace trainscope
