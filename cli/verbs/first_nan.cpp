// A line for what made it, one for each thing that it read, and the way back.
#include "cli/verbs/first_nan.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "engine/core/text.h"

namespace trainscope {
namespace {

using profiler::TensorStatistics;
using profiler::TraceRow;

Json row_json(const TraceRow& row) {
  const TensorStatistics& s = row.statistics;
  return Json::object({{"step", row.step},
                       {"micro_batch", row.micro_batch},
                       {"phase", name_of(row.phase)},
                       {"value", row.key()},
                       {"op", row.op},
                       {"node", row.node},
                       {"kernel", row.kernel},
                       {"nan", s.nan},
                       {"positive_infinite", s.positive_infinite},
                       {"count", s.count},
                       {"largest", largest(s)},
                       {"mean", s.mean},
                       {"std", s.deviation}});
}

std::string row_text(const TraceRow& row) {
  const TensorStatistics& s = row.statistics;
  std::string bad;
  if (s.nan > 0) bad += fmt::format(", {} NaN", s.nan);
  if (s.positive_infinite > 0) bad += fmt::format(", {} +inf", s.positive_infinite);
  return fmt::format("{} ({} {}): largest {:.4g}, mean {:.4g}, std {:.4g}{} of {}",
                     printable(row.key()), row.dtype, row.shape, largest(s), s.mean, s.deviation,
                     bad, s.count);
}

std::string maker_text(const TraceRow& row) {
  if (row.phase == profiler::TracePhase::kUpdate && row.op.empty()) return "the optimizer's update";
  if (row.op.empty()) return "no op";
  const std::string kernel = row.kernel.empty() ? "" : fmt::format(" ({})", row.kernel);
  return fmt::format("{} '{}'{}", row.op, printable(row.node), kernel);
}

}  // namespace

Outcome print(const BadOrigin& origin) {
  const TraceRow& bad = origin.bad;
  const std::string micro =
      bad.micro_batch > 0 ? fmt::format(", micro-batch {}", bad.micro_batch) : "";
  Outcome outcome{.facts = row_json(bad)};
  outcome.text = fmt::format("the first that is no number: step {}, {}{}, {}\n", bad.step,
                             name_of(bad.phase), micro, maker_text(bad));
  outcome.text += fmt::format("  it made {}\n", row_text(bad));
  Json inputs = Json::array();
  for (const TraceRow& row : origin.inputs) {
    outcome.text += fmt::format("  of      {}\n", row_text(row));
    inputs.push_back(row_json(row));
  }
  outcome.facts.set("inputs", std::move(inputs));
  Json chain = Json::array();
  for (const TraceRow& row : origin.chain) {
    outcome.text += fmt::format("back: {} made {}\n", maker_text(row), row_text(row));
    chain.push_back(row_json(row));
  }
  outcome.facts.set("chain", std::move(chain));
  return outcome;
}

}  // namespace trainscope
