// Constants of which the exporter wrote down the parameter that they were computed of: rows of an
// embedding, views, copies for the examples of a batch, one plus a weight.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/initializers/folded.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {
namespace {

constexpr std::array<std::string_view, 6> kFolded = {"view",   "reshape",   "unsqueeze",
                                                     "expand", "embedding", "add"};

// What indices are made by, and what stands beside them.
constexpr std::array<std::string_view, 26> kOfIndices = {"val",      "arange",
                                                         "slice",    "unsqueeze",
                                                         "squeeze",  "expand",
                                                         "view",     "reshape",
                                                         "add",      "sub",
                                                         "rsub",     "cumsum",
                                                         "ones",     "ones_like",
                                                         "zeros",    "zeros_like",
                                                         "full",     "full_like",
                                                         "ne",       "alias",
                                                         "_to_copy", "clone",
                                                         "gather",   "embedding",
                                                         "detach",   "scalar_tensor_default"};
// What changes shapes alone, and the sizes and factors of one for it.
constexpr std::array<std::string_view, 10> kOfMoves = {
    "val",       "value",   "value_cast", "view",  "reshape",
    "unsqueeze", "squeeze", "alias",      "clone", "scalar_tensor_default"};

// "val_3" and "val" for `function` "val".
bool is_numbered(std::string_view name, std::string_view function) {
  return name.starts_with(function) &&
         name.find_first_not_of("_0123456789", function.size()) == std::string_view::npos;
}

bool is_one_of(std::span<const std::string_view> functions, std::string_view name) {
  return std::ranges::any_of(functions,
                             [name](std::string_view each) { return is_numbered(name, each); });
}

bool is_foldable(std::string_view result) {
  return std::ranges::find(kFolded, function_of(result)) != kFolded.end();
}

std::string_view leaf_of(std::string_view target) { return target.substr(target.rfind('.') + 1); }

bool is_ones(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32 || tensor.shape().rank != 1) return false;
  return std::ranges::all_of(tensor.values<float>(), [](float x) { return x == 1.0F; });
}

}  // namespace

bool ProgramRestorer::is_missing(const ProgramInput& input) const {
  return input.kind == "PARAMETER" && !calls_.is_read(input) && edit_.find(input.target) < 0;
}

// The one parameter that a constant was computed of; null when there is none or more of them.
const ProgramInput* ProgramRestorer::only_source(const std::string& constant) const {
  const auto found = edit_.model().marks.folded_from.find(constant);
  if (found == edit_.model().marks.folded_from.end()) return nullptr;
  const ProgramInput* source = nullptr;
  for (const std::string& name : found->second) {
    const ProgramInput* input = calls_.find_target(name);
    if (input == nullptr || input->kind != "PARAMETER" || input == source) continue;
    if (source != nullptr) return nullptr;
    source = input;
  }
  return source;
}

// Whether a constant has a parameter's elements in another shape or repeated, as far as the file
// tells: nothing but sizes stands beside the parameter in what it was made of.
bool ProgramRestorer::is_moved(const std::string& constant) const {
  const auto found = edit_.model().marks.folded_from.find(constant);
  if (found == edit_.model().marks.folded_from.end()) return true;
  const ProgramInput* source = only_source(constant);
  return source != nullptr && std::ranges::all_of(found->second, [&](const std::string& name) {
           return name == source->target || is_one_of(kOfMoves, name);
         });
}

// Whether a constant is what a lookup gave, perhaps in another shape.
bool ProgramRestorer::is_of_lookup(const std::string& constant) const {
  if (function_of(constant) == "embedding") return true;
  const std::vector<std::string>& sources = edit_.model().marks.folded_from.at(constant);
  return std::ranges::any_of(
      sources, [](const std::string& name) { return is_numbered(name, "embedding"); });
}

// Whether only indices stand beside the parameter, not numbers that it was multiplied by.
bool ProgramRestorer::is_lookup(const ProgramInput& input, const std::string& constant) const {
  const std::vector<std::string>& sources = edit_.model().marks.folded_from.at(constant);
  // Of cumulated masks of ones and zeros positions are made, by products too.
  const bool counts = std::ranges::any_of(
      sources, [](const std::string& name) { return is_numbered(name, "cumsum"); });
  return std::ranges::all_of(sources, [&](const std::string& name) {
    if (name == input.target) return true;
    if (const ProgramInput* other = calls_.find_target(name)) return other->kind != "PARAMETER";
    return calls_.is_user_input(name) || is_one_of(kOfIndices, name) ||
           (counts && is_numbered(name, "mul"));
  });
}

// The constants that a call reads, each with the result that it stands for: that of its own name,
// or, as the exporter merges equal constants, the one of the same function in that place.
std::vector<ProgramRestorer::Folded> ProgramRestorer::folded_of(const ProgramCall& call) const {
  std::vector<Read> reads = reads_of(call);
  std::erase_if(reads, [](const Read& read) { return read.marked; });
  std::vector<std::string> results;
  for (const std::string& result : call.missing_results) {
    const bool present = edit_.find(result) >= 0 && !edit_.is_float_initializer(result);
    if (is_foldable(result) && !present) results.push_back(result);
  }
  if (reads.empty() || reads.size() != results.size()) return {};
  std::vector<Folded> folded;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    // What is there under its own name is not read under another one.
    const std::string& name = reads[i].name;
    if (edit_.find(results[i]) >= 0 && name != results[i]) return {};
    if (calls_.is_missing_result(name) && function_of(name) != function_of(results[i])) return {};
    folded.push_back({.result = results[i], .read = std::move(reads[i])});
  }
  return folded;
}

// The parameter that the constant of a result is made of: the one that the exporter names, or, of a
// constant that was merged with it, the only one that the call's module misses; of a weight and a
// bias the bias where it is added.
const ProgramInput* ProgramRestorer::missing_of(const ProgramCall& call,
                                                const Folded& folded) const {
  const std::string& name = folded.read.name;
  const ProgramInput* source = only_source(name);
  if (source == nullptr) return nullptr;
  if (folded.result == name || !calls_.is_missing_result(name)) {
    return is_missing(*source) || restored_.contains(folded.result) ? source : nullptr;
  }
  std::vector<const ProgramInput*> missing;
  for (const ProgramInput& input : edit_.model().marks.program) {
    if (module_of(input.target) == call.module && is_missing(input)) missing.push_back(&input);
  }
  const std::string_view leaf = edit_.node(folded.read.node).op_type() == "Add" ? "bias" : "weight";
  const auto by_leaf = std::ranges::find_if(
      missing, [leaf](const ProgramInput* input) { return leaf_of(input->target) == leaf; });
  if (missing.size() == 2 && by_leaf != missing.end()) missing = {*by_leaf};
  if (missing.size() != 1) return nullptr;
  // It stands for the same thing in another module, or beside the other one in the same call.
  const auto known = leaves_.find(name);
  const bool alike = known != leaves_.end() && known->second.contains(leaf_of(missing[0]->target));
  const bool beside = std::ranges::find(call.missing_results, name) != call.missing_results.end();
  return alike || beside ? missing.front() : nullptr;
}

void ProgramRestorer::restore_folded(const ProgramCall& call) {
  const NodeMarks& marks = edit_.model().marks.nodes[static_cast<std::size_t>(call.nodes.front())];
  if (call.function.starts_with("aten.addc") && marks.has_keywords) return;  // a factor
  for (const Folded& folded : folded_of(call)) {
    const ProgramInput* input = missing_of(call, folded);
    if (input == nullptr || !edit_.has_elements(edit_.find(folded.read.name))) continue;
    const std::string_view function = function_of(folded.result);
    bool done = false;
    if (function == "add") {
      done = restore_sum(*input, folded.read);
    } else if (is_of_lookup(folded.read.name)) {
      done = restore_rows(*input, folded.read);
    } else {
      done = unfold_moved(function, *input, folded.read);
    }
    if (!done) continue;
    restored_.insert(folded.result);
    leaves_[folded.read.name].insert(std::string(leaf_of(input->target)));
  }
}

void ProgramRestorer::restore_folded() {
  for (const ProgramCall& call : calls_.calls()) restore_folded(call);
}

// The rows that the constant indices of a lookup name, as a parameter of these rows alone.
bool ProgramRestorer::restore_rows(const ProgramInput& input, const Read& read) {
  if (!is_lookup(input, read.name)) return false;
  std::optional<LookedUp> found = looked_up(*edit_.elements(edit_.find(read.name)));
  if (!found) return false;
  const std::string ids = rows_name(input.target);
  const bool present = edit_.find(ids) >= 0;
  if (present ? !edit_.equal(edit_.find(ids), found->ids) : !edit_.is_free(ids)) return false;
  const std::int64_t count = found->rows.shape()[0];
  const std::string how =
      fmt::format("only the {} row{} of it that this graph reads {} in the file: trained {}", count,
                  count == 1 ? "" : "s", count == 1 ? "is" : "are",
                  count == 1 ? "is this row" : "are these rows");
  if (!add_parameter(input, read, std::move(found->rows), how)) return false;
  if (!present) {
    edit_.add(ids, std::make_shared<const Tensor>(std::move(found->ids)),
              {.name = ids, .from = read.name, .how = "which row stands where in the constant"});
  }
  read_through(input, read, "Gather");
  rows_.push_back(input.target);
  return true;
}

// Whether nothing but one number stands beside a parameter in what a sum was made of; the exporter
// has it as a constant, as the same under a name of its own, or as both.
bool ProgramRestorer::is_of_one_number(const std::string& constant) const {
  const auto found = edit_.model().marks.folded_from.find(constant);
  const ProgramInput* source = only_source(constant);
  if (source == nullptr) return false;
  std::size_t constants = 0;
  std::size_t numbers = 0;
  for (const std::string& name : found->second) {
    if (name == source->target) continue;
    const bool number = is_numbered(name, "scalar_tensor_default");
    if (!number && !is_numbered(name, "val")) return false;
    ++(number ? numbers : constants);
  }
  return constants <= 1 && numbers <= 1 && constants + numbers > 0;
}

// One plus a weight of zeros. Of other sums the file does not tell the terms.
bool ProgramRestorer::restore_sum(const ProgramInput& input, const Read& read) {
  const SharedTensor sum = edit_.elements(edit_.find(read.name));
  if (!is_ones(*sum) || !is_of_one_number(read.name)) return false;
  const std::string how = fmt::format("folded into '{}', one plus it", printable(read.name));
  if (!add_parameter(input, read, Tensor(sum->type()), how)) return false;
  read_through(input, read, "Add");
  sums_.push_back(input.target);
  return true;
}

// Whether a missing result tells that a parameter may have gone: a constant, unless the exporter
// wrote down that it is of no parameter, or a sum or product with nothing.
bool ProgramRestorer::is_place(const std::string& result) const {
  constexpr std::array<std::string_view, 4> kNeutral = {"mul", "add", "sub", "div"};
  if (restored_.contains(result)) return false;
  if (edit_.find(result) < 0) {
    return std::ranges::find(kNeutral, function_of(result)) != kNeutral.end();
  }
  const bool told = edit_.model().marks.folded_from.contains(result);
  return edit_.is_float_initializer(result) && (!told || calls_.is_of_parameter(result));
}

// Whether a constant of that result may have been merged with another result's.
bool ProgramRestorer::is_merged(const ProgramCall& call, const std::string& result) const {
  if (!is_foldable(result) || edit_.find(result) >= 0 || restored_.contains(result)) return false;
  const std::vector<Read> reads = reads_of(call);
  return std::ranges::any_of(reads, [&](const Read& read) {
    const bool own =
        std::ranges::find(call.missing_results, read.name) != call.missing_results.end();
    return !read.marked && !own && calls_.is_missing_result(read.name);
  });
}

// What still stands for parameters: gradients would not reach these.
void ProgramRestorer::find_constants_of_parameters() {
  std::set<std::string> constants;
  for (int i = 0; i < edit_.node_count(); ++i) {
    for (const std::string& input : edit_.node(i).input()) {
      if (edit_.find(input) >= 0) constants.insert(input);
    }
  }
  for (const auto& [constant, sources] : edit_.model().marks.folded_from) {
    if (!constants.contains(constant) || !edit_.is_float_initializer(constant)) continue;
    for (const std::string& name : sources) {
      const ProgramInput* input = calls_.find_target(name);
      if (input == nullptr || input->kind != "PARAMETER") continue;
      lost_.push_back(name);
      evidence_.push_back(constant);
    }
  }
}

}  // namespace trainscope
