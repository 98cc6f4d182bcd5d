// Plans and profiles of the runs of a side.
#include "cli/compare/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "engine/bundle/format.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/analysis/profile.h"

namespace trainscope {
namespace {

bool same_calls(const PlanView& a, const PlanView& b) {
  return std::ranges::equal(a.calls, b.calls, [&](const PlanCall& left, const PlanCall& right) {
    return a.name_of(left) == b.name_of(right) && a.text(left.kernel) == b.text(right.kernel);
  });
}

}  // namespace

std::vector<std::string> folders_of(const std::string& words) {
  if (std::filesystem::exists(words)) return {words};
  std::vector<std::string> folders;
  for (const std::string_view word : split(words, ',')) folders.emplace_back(word);
  return folders;
}

bool are_runs(const std::string& words) {
  return std::ranges::all_of(folders_of(words), [](const std::string& folder) {
    return Folder::open(folder).has_file(kRunManifestFile);
  });
}

Side::Side(const std::string& words) {
  for (const std::string& folder : folders_of(words)) add(folder);
}

profiler::Breakdown Side::by(profiler::GroupBy group) const {
  const auto profile = profiler::Profile::open(RunReader::open(first_));
  require(!times_->steps.empty(), ErrorCode::kUsage, "the profile of '{}' has no whole step yet",
          printable(first_));
  return profiler::breakdown(*times_, profile.plan(), group);
}

void Side::add(const std::string& folder) {
  const RunReader run = RunReader::open(folder);
  std::optional<StoredPlan> plan = run.plan();
  require(plan.has_value(), ErrorCode::kBadInput, "the run '{}' has no plan yet",
          printable(folder));
  if (plan_) {
    if (!same_calls(plan_->view(), plan->view())) {
      throw Error(ErrorCode::kUsage, fmt::format("the runs '{}' and '{}' have not the same calls",
                                                 printable(first_), printable(folder)))
          .hint("several runs of one side are of one command");
    }
    require(is_profiled() == run.events().has_value(), ErrorCode::kUsage,
            "several runs of one side need a profile each: '{}' and '{}' are not both profiled",
            printable(first_), printable(folder));
  } else {
    first_ = folder;
    plan_ = std::move(plan);
  }
  if (!run.events()) return;
  const auto profile = profiler::Profile::open(run);
  profiler::StepTimes times = profiler::step_times(profile.events(), profile.plan());
  if (times_) {
    profiler::append(*times_, times);
  } else {
    times_ = std::move(times);
  }
}

}  // namespace trainscope
