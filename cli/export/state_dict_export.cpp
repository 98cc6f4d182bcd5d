// What of a PyTorch module's state_dict comes back, and what does not.
#include "cli/export/state_dict_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/flags/training_flags.h"
#include "engine/core/text.h"
#include "engine/state_dict.h"

namespace trainscope {
namespace {

using Names = std::vector<std::string>;

// "3 tensors are".
std::string count_text(std::size_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} tensor{}", count, count == 1 ? one : more);
}

// "'a', 'b' and 12 more" of texts in quotes.
std::string listed(Names texts) {
  constexpr std::size_t kShown = 4;
  const std::size_t all = texts.size();
  texts.resize(std::min(all, kShown));
  return join(texts, ", ") + (all > kShown ? fmt::format(" and {} more", all - kShown) : "");
}

void warn_of_lost(const TorchNames& names, Logger& log) {
  std::map<std::string, Names> by_reason;
  for (const LostTensor& each : names.lost) {
    const std::string reader = each.reader.empty() ? "" : fmt::format(" of '{}'", each.reader);
    by_reason[each.reason].push_back(
        fmt::format("'{}'{}", printable(each.name), printable(reader)));
  }
  for (const auto& [reason, lost] : by_reason) {
    log.warning("{} lost, {}: {}", count_text(lost.size(), " is", "s are"), reason, listed(lost));
  }
  Names unread;
  for (const std::string& name : names.unread) {
    unread.push_back(fmt::format("'{}'", printable(name)));
  }
  if (unread.empty()) return;
  log.warning("{} not in the model, as its forward pass does not need {} under {}: {}",
              count_text(unread.size(), " is", "s are"), unread.size() == 1 ? "it" : "them",
              unread.size() == 1 ? "this name" : "these names", listed(unread));
}

// What is there, and need not be as the module has it.
void warn_of_untold(const TorchNames& names, const Names& reshaped, Logger& log) {
  const auto quoted = [](const Names& all) {
    Names texts;
    for (const std::string& name : all) texts.push_back(fmt::format("'{}'", printable(name)));
    return listed(std::move(texts));
  };
  if (!reshaped.empty()) {
    log.warning("{} in a shape that may not be the module's, which the exporter folded: {}",
                count_text(reshaped.size(), " is", "s are"), quoted(reshaped));
  }
  if (!names.added.empty()) {
    log.warning(
        "{} written as what is added to 1; where the module adds another number, which the "
        "exporter folded, subtract that less 1: {}",
        count_text(names.added.size(), " is", "s are"), quoted(names.added));
  }
}

Json lost_facts(const std::vector<LostTensor>& lost) {
  Json list = Json::array();
  for (const LostTensor& each : lost) {
    list.push_back(Json::object({{"name", each.name}, {"reason", each.reason}}));
  }
  return list;
}

// The call that loads it; of elements in other shapes than the module's, with its own.
std::string load_text(const std::string& out, bool whole, bool reshaped) {
  std::string state = fmt::format("safetensors.torch.load_file(\"{}\")", printable(out));
  std::string before;
  if (reshaped) {
    before = "own = model.state_dict(); ";
    state =
        fmt::format("{{name: each.reshape(own[name].shape) for name, each in {}.items()}}", state);
  }
  return fmt::format("load it: {}model.load_state_dict({}{})\n", before, state,
                     whole ? "" : ", strict=False");
}

}  // namespace

Outcome export_state_dict(const Source& source, const Invocation& settled, const std::string& out) {
  const Source::Trained trained = source.trained_model(settled);
  ImportOptions options;
  choose_what_to_train(settled.settings(), options);
  const TorchNames names = torch_names(trained.model, options);
  const TensorByName elements =
      trained.checkpoint ? tensors_of(trained.checkpoint) : TensorByName();
  write_state_dict(trained.model, names.tensors, elements, out);
  warn_of_lost(names, settled.log());
  Names reshaped;
  for (const TorchTensor& each : names.tensors) {
    if (!each.shape_told) reshaped.push_back(each.name);
  }
  warn_of_untold(names, reshaped, settled.log());
  const bool whole = names.lost.empty() && names.unread.empty();
  std::string text = fmt::format("wrote {}: {} of a state_dict\n", printable(out),
                                 count_text(names.tensors.size(), "", "s"));
  if (!names.counters.empty()) {
    text += fmt::format(
        "num_batches_tracked of {} batch norm{} is not in the model: the module keeps its own\n",
        names.counters.size(), names.counters.size() == 1 ? "" : "s");
  }
  text += load_text(out, whole, !reshaped.empty());
  return {.facts = Json::object({{"file", out},
                                 {"format", "safetensors"},
                                 {"tensors", names.tensors.size()},
                                 {"lost", lost_facts(names.lost)},
                                 {"unread", Json::list(names.unread)},
                                 {"reshaped", Json::list(reshaped)},
                                 {"added_to_one", Json::list(names.added)},
                                 {"counters", Json::list(names.counters)}}),
          .text = text};
}

}  // namespace trainscope
