// Looks for the output by its name, then by being the only one.
#include "engine/model_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kUsualOutput = "logits";

void resolve_term(const OnnxModel& model, LossOptions& loss) {
  if (!loss.output.empty()) return;
  std::vector<std::string> names;
  for (const ModelTensor& output : model.outputs()) names.push_back(output.name);
  if (std::ranges::find(names, kUsualOutput) != names.end()) {
    loss.output = kUsualOutput;
  } else if (names.size() == 1) {
    loss.output = names.front();
  } else {
    throw Error(ErrorCode::kUsage, "which output does the loss read? The model has no 'logits'")
        .hint(fmt::format("--loss {}:output=NAME with one of {}", name_of(loss.kind),
                          printable(join(names, ", "), 400)));
  }
}

}  // namespace

void resolve_loss_output(const OnnxModel& model, LossOptions& loss) {
  resolve_term(model, loss);
  for (LossOptions& term : loss.further) resolve_term(model, term);
}

}  // namespace trainscope
