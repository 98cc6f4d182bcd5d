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

Json lost_facts(const std::vector<LostTensor>& lost) {
  Json list = Json::array();
  for (const LostTensor& each : lost) {
    list.push_back(Json::object({{"name", each.name}, {"reason", each.reason}}));
  }
  return list;
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
  const bool whole = names.lost.empty() && names.unread.empty();
  std::string text = fmt::format("wrote {}: {} of a state_dict\n", printable(out),
                                 count_text(names.tensors.size(), "", "s"));
  if (!names.counters.empty()) {
    text += fmt::format(
        "num_batches_tracked of {} batch norm{} is not in the model: the module keeps its own\n",
        names.counters.size(), names.counters.size() == 1 ? "" : "s");
  }
  text += fmt::format("load it: model.load_state_dict(safetensors.torch.load_file(\"{}\"){})\n",
                      printable(out), whole ? "" : ", strict=False");
  return {.facts = Json::object({{"file", out},
                                 {"format", "safetensors"},
                                 {"tensors", names.tensors.size()},
                                 {"lost", lost_facts(names.lost)},
                                 {"unread", Json::list(names.unread)},
                                 {"counters", Json::list(names.counters)}}),
          .text = text};
}

}  // namespace trainscope
