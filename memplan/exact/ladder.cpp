// Heights in turn: the bound first, since it is met most often, then halves of what is open.
#include "memplan/exact/ladder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using std::uint64_t;

// Effort for the first question; each pass over the interval asks with more.
constexpr uint64_t kFirstVisits = 1 << 22;
constexpr uint64_t kMoreVisits = 4;

std::vector<Preference> preferences_for(const Task& task, const SearchModel& model) {
  std::vector<double> durations;
  for (const std::int32_t index : model.task_index) {
    durations.push_back(static_cast<double>(task.boxes[static_cast<size_t>(index)].duration));
  }
  return make_preferences(model, durations);
}

class Ladder {
 public:
  Ladder(const Task& task, SearchModel model, const Effort& effort)
      : model_(std::make_shared<const SearchModel>(std::move(model))),
        preferences_(preferences_for(task, *model_)),
        effort_(effort) {}

  // Everything in units; rounding is safe because all heights are multiples of the unit.
  Improved run(const Interval& known, int64_t target_bytes) {
    const int64_t unit = model_->unit_bytes;
    lower_ = static_cast<Units>((known.lower_bytes + unit - 1) / unit);
    height_ = static_cast<Units>(known.height_bytes / unit);
    target_ = static_cast<Units>(std::min(target_bytes, known.height_bytes) / unit);
    for (uint64_t visits = kFirstVisits; open() && !spent(); visits *= kMoreVisits) pass(visits);
    improved_.interval = {.lower_bytes = std::max(known.lower_bytes, lower_ * unit),
                          .height_bytes = std::min(known.height_bytes, height_ * unit)};
    return std::move(improved_);
  }

 private:
  bool open() const { return height_ > target_ && height_ > lower_; }
  bool spent() const { return improved_.visits >= effort_.visits || effort_.deadline.expired(); }

  // From the lowest height that may suffice upwards; what a question leaves open is left behind.
  void pass(uint64_t visits) {
    Units floor = std::max(lower_, target_);
    Units asked = floor;
    while (floor < height_ && open() && !spent()) {
      const Verdict verdict = ask(asked, visits);
      if (verdict == Verdict::kImpossible) floor = std::max(floor, lower_);
      if (verdict == Verdict::kUnknown) floor = asked + 1;
      asked = floor + (height_ - floor) / 2;
    }
  }

  Verdict ask(Units height, uint64_t visits) {
    Effort effort = effort_;
    effort.visits = std::min(visits, effort_.visits - improved_.visits);
    const Decision decision = height == std::max(lower_, target_)
                                  ? race_for_lowest(height).advance(effort)
                                  : HeightRace(model_, preferences_, height).advance(effort);
    improved_.visits += std::max<uint64_t>(decision.visits, 1);
    if (decision.verdict == Verdict::kFits) accept(decision.offsets);
    if (decision.verdict == Verdict::kImpossible) {
      lower_ = std::max(lower_, std::min(decision.next_height, height_));
    }
    return decision.verdict;
  }

  // Every pass asks for it: the race goes on from where it stopped.
  HeightRace& race_for_lowest(Units height) {
    if (!lowest_race_ || lowest_asked_ != height) {
      lowest_race_.emplace(model_, preferences_, height);
      lowest_asked_ = height;
    }
    return *lowest_race_;
  }

  void accept(const std::vector<Units>& offsets) {
    improved_.offsets.emplace(offsets.size());
    height_ = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const auto index = static_cast<size_t>(model_->task_index[i]);
      (*improved_.offsets)[index] = offsets[i] * model_->unit_bytes;
      height_ = std::max(height_, offsets[i] + model_->boxes[i].size);
    }
  }

  std::shared_ptr<const SearchModel> model_;
  std::vector<Preference> preferences_;
  Effort effort_;
  std::optional<HeightRace> lowest_race_ = {};
  Units lowest_asked_ = 0;
  Units lower_ = 0;
  Units height_ = 0;
  Units target_ = 0;
  Improved improved_;
};

}  // namespace

Improved lower_exactly(const Task& task, const Interval& known, int64_t target_bytes,
                       const Effort& effort) {
  std::optional<SearchModel> model = make_search_model(task, known.height_bytes);
  if (!model) return {.interval = known};
  return Ladder(task, std::move(*model), effort).run(known, target_bytes);
}

}  // namespace trainscope::memplan
