// Parameters that no call reads: those under another name, and those whose views, or copies for the
// examples of a batch, the exporter made constants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/initializers/folded.h"
#include "engine/onnx/initializers/hidden_calls.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {

// "encoder.0" of "encoder.0.weight".
std::string module_of(const std::string& target) {
  const std::size_t dot = target.rfind('.');
  return dot == std::string::npos ? "" : target.substr(0, dot);
}

// "view" of the result "view_3".
std::string_view function_of(std::string_view result) {
  return result.substr(0, result.find_last_not_of("_0123456789") + 1);
}

// Whether an input of the graph has so many examples.
bool ProgramRestorer::is_batch(std::int64_t size) const {
  return std::ranges::any_of(edit_.model().facts.inputs, [size](const ModelTensor& input) {
    return input.dims && !input.dims->empty() && input.dims->front().size == size;
  });
}

// What was repeated to [N, ...], [N, M, ...] and the like. Where slices along several axes are
// equal the elements do not tell which were repeated; of equal numbers alone, with one slice for
// each example of a batch, those for the examples (`uniform`).
std::optional<Tensor> ProgramRestorer::unrepeated(const Tensor& folded, bool& uniform) const {
  const std::vector<int> axes = repeated_axes(folded);
  if (axes.empty()) return folded;
  const Shape& shape = folded.shape();
  uniform = axes.size() == 2 && axes[0] == 0 && axes[1] == shape.rank - 1 && is_batch(shape[0]) &&
            shape.elements() == shape[0] * shape[shape.rank - 1];
  if (axes.size() > 1 && !uniform) return std::nullopt;
  return first_slice(folded, axes.front());
}

// The same of a view, or of slices that are repeated (rows for the examples of a batch, a token for
// all positions).
bool ProgramRestorer::unfold_moved(std::string_view function, const ProgramInput& input,
                                   const Read& read) {
  const int from = edit_.find(read.name);
  if (!edit_.has_elements(from) || !is_moved(read.name)) return false;
  const SharedTensor folded = edit_.elements(from);
  const bool repeated = function == "expand";
  bool uniform = false;
  std::optional<Tensor> elements =
      repeated ? unrepeated(*folded, uniform) : std::optional(without_ones(*folded));
  const std::string how = fmt::format("folded into '{}', {}", printable(read.name),
                                      repeated ? "repeated" : "in another shape");
  if (!elements || !add_parameter(input, read, std::move(*elements), how)) return false;
  read_through(input, read, repeated ? "Expand" : "Reshape", kShapeOfView);
  if (uniform) uniform_.push_back(input.target);
  return true;
}

// Whether it was restored from the one constant that a call of its module reads in place of a view
// of it, or of it repeated, where that module misses no other tensor. Where the whole model misses
// no other, a call of any module (a class token that a later block puts before the patches).
bool ProgramRestorer::find_moved(const std::string& target) {
  constexpr std::array<std::string_view, 4> kMoves = {"view", "reshape", "unsqueeze", "expand"};
  const std::string module = module_of(target);
  const auto is_missing = [&](const ProgramInput& input) {
    return input.kind != "USER_INPUT" && !calls_.is_read(input) && edit_.find(input.target) < 0;
  };
  const auto of_module = [&](const ProgramInput& input) {
    return module_of(input.target) == module && is_missing(input);
  };
  const std::vector<ProgramInput>& program = edit_.model().marks.program;
  if (std::ranges::count_if(program, of_module) != 1) return false;
  const bool alone = std::ranges::count_if(program, is_missing) == 1;
  bool restored = false;
  for (const ProgramCall& call : calls_.calls()) {
    if ((call.module != module && !alone) || call.missing_results.size() != 1) continue;
    const std::string_view function = function_of(call.missing_results.front());
    if (std::ranges::find(kMoves, function) == kMoves.end()) continue;
    std::vector<Read> reads = reads_of(call);
    std::erase_if(reads, [](const Read& read) { return read.marked; });
    if (reads.size() != 1) continue;
    if (!unfold_moved(function, *calls_.find_target(target), reads.front())) return false;
    restored = true;
  }
  return restored;
}

// PyTorch ties parameters by having one under two names: a call in the module of the other name
// reads it, a bias in the place of a bias. "" when there is none.
std::string ProgramRestorer::tied_to(const ProgramInput& input) const {
  const std::string module = module_of(input.target);
  const auto is_bias = [](const ProgramInput& each) { return each.target.ends_with("bias"); };
  for (const ProgramCall& call : calls_.calls()) {
    if (call.module != module || module.empty()) continue;
    for (const ProgramInput* read : call.tensors) {
      const bool other = read->kind == "PARAMETER" && !read->target.starts_with(module + ".");
      if (!other || is_bias(*read) != is_bias(input)) continue;
      if (edit_.find(read->target) >= 0) return read->target;
    }
  }
  return {};
}

// Whether calls that were merged read parameters in the place of this one: of its module, or under
// the same name in a module with as many parameters.
bool ProgramRestorer::find_twins(const std::string& target) {
  const auto names_of = [this](const std::string& module) {
    std::set<std::string> names;
    for (const ProgramInput& input : edit_.model().marks.program) {
      if (input.kind != "PARAMETER" || module_of(input.target) != module) continue;
      names.insert(input.target.substr(module.size()));
    }
    return names;
  };
  const std::string module = module_of(target);
  const std::string leaf = target.substr(module.size());
  bool found = false;
  for (const std::string& other : merged_) {
    const std::string its_module = module_of(other);
    const bool alike =
        other.substr(its_module.size()) == leaf && names_of(its_module) == names_of(module);
    if (its_module != module && !alike) continue;
    twins_.push_back(other);
    found = true;
  }
  if (!found) return false;
  twins_.push_back(target);
  unread_twins_.push_back(target);
  return true;
}

// Parameters that no call reads any longer, in a model that has constants in place of results.
void ProgramRestorer::find_folded() {
  std::vector<std::string> unread;
  for (const ProgramInput& input : edit_.model().marks.program) {
    if (input.kind != "PARAMETER" || calls_.is_read(input) || edit_.find(input.target) >= 0)
      continue;
    std::string same = tied_to(input);
    if (same.empty()) {
      unread.push_back(input.target);
    } else {
      edit_.model().tied.emplace(input.target, std::move(same));
    }
  }
  std::erase_if(unread, [this](const std::string& target) { return find_moved(target); });
  std::erase_if(unread, [this](const std::string& target) { return find_twins(target); });
  if (unread.empty()) return;
  std::vector<std::string> places;
  const std::set<std::string> moved = moved_parameters(edit_, calls_);
  for (const ProgramCall& call : calls_.calls()) {
    std::ptrdiff_t made = 0;  // of parameters that are there: they stand for missing results
    for (int node : call.nodes) {
      made += std::ranges::count_if(edit_.node(node).input(),
                                    [&](const auto& name) { return moved.contains(name); });
    }
    std::vector<std::string> own;
    std::ranges::copy_if(call.missing_results, std::back_inserter(own), [&](const auto& result) {
      return is_place(result) || is_merged(call, result);
    });
    if (std::ssize(own) > made) places.insert(places.end(), own.begin(), own.end());
  }
  if (places.empty()) return;
  unread_ = std::move(unread);
  places_ = std::move(places);
}

}  // namespace trainscope
