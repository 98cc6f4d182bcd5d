// What is said of a file's parameters that are lost, and of those whose place is not all told.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {
namespace {

constexpr std::string_view kKeepProgram =
    "export it as it is: torch.onnx.export(model, args, \"model.onnx\", dynamo=True, "
    "optimize=False), with model.train() before it";

std::vector<std::string> without_repeats(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

// The first eight, quoted, and how many more.
std::string listed(const std::vector<std::string>& all) {
  std::vector<std::string> names = without_repeats(all);
  const std::size_t count = names.size();
  if (count > 8) names.resize(8);
  for (std::string& name : names) name = fmt::format("'{}'", printable(name));
  return join(names, ", ") + (count > 8 ? fmt::format(" and {} more", count - 8) : "");
}

}  // namespace

void ProgramRestorer::add_faults() {
  std::set<std::string>& lost = edit_.model().lost;
  lost.insert(fused_tensors_.begin(), fused_tensors_.end());
  lost.insert(lost_.begin(), lost_.end());
  if (!fused_.empty()) {
    edit_.model().faults.push_back(
        {.message =
             fmt::format("the exporter fused batch norms into the layers before them: {}. Their "
                         "parameters and running statistics are not in the file",
                         listed(fused_)),
         .hint = std::string(kKeepProgram),
         .parameters = {fused_tensors_.begin(), fused_tensors_.end()}});
  }
  if (!lost_.empty()) {
    edit_.model().faults.push_back(
        {.message = fmt::format("parameters of the module are not in the file, only constants that "
                                "the exporter made of them or of what reads them: {} (see {})",
                                listed(lost_), listed(evidence_)),
         .hint = std::string(kKeepProgram),
         .parameters = without_repeats(lost_)});
  }
  std::erase_if(unread_, [this](const auto& name) { return std::ranges::count(lost_, name) > 0; });
  if (!unread_.empty()) {
    edit_.model().faults.push_back(
        {.message =
             fmt::format("no call of the file reads {}: the module does not use them, or the "
                         "exporter made constants of them (see {})",
                         listed(unread_), listed(places_)),
         .hint = std::string(kKeepProgram),
         .parameters = without_repeats(unread_)});
    lost.insert(unread_.begin(), unread_.end());
  }
  if (!twins_.empty()) {
    edit_.model().faults.push_back(
        {.message = fmt::format("no call of the file reads {}: the exporter merged calls whose "
                                "parameters were equal, so that one stands for several",
                                listed(unread_twins_)),
         .hint = std::string(kKeepProgram),
         .parameters = without_repeats(twins_)});
    lost.insert(unread_twins_.begin(), unread_twins_.end());
  }
}

void ProgramRestorer::add_notes() {
  std::vector<ParameterFault>& notes = edit_.model().notes;
  if (evaluates_) {
    notes.push_back({.message =
                         "the model was exported in eval mode: its dropouts are not in the file; "
                         "batch norms train on batches unless --batch-norm running is given",
                     .hint = "call model.train() before torch.onnx.export(..., dynamo=True)"});
  }
  if (!rows_.empty()) {
    notes.push_back(
        {.message = fmt::format("lookups of constant rows were folded: {}; whether one of the rows "
                                "is the padding_idx, which PyTorch does not train, is not told",
                                listed(rows_)),
         .hint = std::string(kKeepProgram)});
  }
  if (!sums_.empty()) {
    notes.push_back(
        {.message = fmt::format("a number that is not told is added to {}: it is taken for 1, so "
                                "that the parameter begins with zeros",
                                listed(sums_)),
         .hint = std::string(kKeepProgram)});
  }
  if (!uniform_.empty()) {
    notes.push_back(
        {.message = fmt::format("of {} all numbers are equal in the file: its copies are taken to "
                                "be those for the examples of a batch",
                                listed(uniform_)),
         .hint = std::string(kKeepProgram)});
  }
}

}  // namespace trainscope
