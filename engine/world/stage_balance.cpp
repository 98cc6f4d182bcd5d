// Dynamic programming over the ends of stages: first the least maximum, then the least squares.
#include "engine/world/stage_balance.h"

#include <algorithm>
#include <limits>

#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1.0 + 1e-9;  // equal stages have sums that differ in their last bits

double larger(double so_far, double stage) { return std::max(so_far, stage); }
double plus_square(double so_far, double stage) { return so_far + stage * stage; }
using Join = double (*)(double so_far, double stage);

class Balance {
 public:
  Balance(const PieceCosts& costs, std::size_t stages)
      : costs_(costs),
        pieces_(costs.seconds.size()),
        stages_(stages),
        seconds_(pieces_ + 1, 0.0),
        parameters_(pieces_ + 1, 0),
        begin_(stages * (pieces_ + 1), 0) {
    for (std::size_t i = 0; i < pieces_; ++i) {
      seconds_[i + 1] = seconds_[i] + costs.seconds[i];
      parameters_[i + 1] = parameters_[i] + (costs.with_parameters[i] ? 1 : 0);
    }
  }

  std::vector<int> find() {
    const double most = sweep(larger, kInfinity);
    CHECK_INVARIANT(most < kInfinity);
    sweep(plus_square, most * kRounding);
    std::vector<int> stage_of(pieces_, 0);
    std::size_t end = pieces_;
    for (std::size_t stage = stages_; stage-- > 0;) {
      const std::size_t begin = begin_[stage * (pieces_ + 1) + end];
      std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(begin),
                stage_of.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(stage));
      end = begin;
    }
    return stage_of;
  }

 private:
  // The least that `join` makes of stages that cost at most `limit` each; where they begin is kept.
  double sweep(Join join, double limit) {
    std::vector<double> before(pieces_ + 1, kInfinity);
    before[0] = 0.0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<double> best(pieces_ + 1, kInfinity);
      const std::size_t later = stages_ - 1 - stage;  // each needs a piece
      for (std::size_t end = stage + 1; end + later <= pieces_; ++end) {
        best[end] = end_stage({.stage = stage, .end = end}, before, join, limit);
      }
      before = std::move(best);
    }
    return before[pieces_];
  }

  struct End {
    std::size_t stage = 0;
    std::size_t end = 0;  // the piece after its last one
  };
  double end_stage(const End& at, const std::vector<double>& before, Join join, double limit) {
    double best = kInfinity;
    for (std::size_t begin = at.end; begin-- > at.stage;) {
      const double alone = seconds_[at.end] - seconds_[begin];
      if (alone > limit || join(0.0, alone) > best * kRounding) break;
      const bool useful = parameters_[at.end] > parameters_[begin];
      const double stage = alone + messages(begin, at.end);
      if (!useful || stage > limit || before[begin] == kInfinity) continue;
      const double total = join(before[begin], stage);
      if (total > best * kRounding) continue;
      best = std::min(best, total);
      begin_[at.stage * (pieces_ + 1) + at.end] = begin;
    }
    return best;
  }

  double messages(std::size_t begin, std::size_t end) const {
    return (begin > 0 ? costs_.message_seconds[begin - 1] : 0.0) +
           (end < pieces_ ? costs_.message_seconds[end - 1] : 0.0);
  }

  const PieceCosts& costs_;
  std::size_t pieces_;
  std::size_t stages_;
  std::vector<double> seconds_;     // of the pieces before each
  std::vector<int> parameters_;     // pieces with parameters before each
  std::vector<std::size_t> begin_;  // by stage and end
};

}  // namespace

std::vector<int> balanced_stages(const PieceCosts& costs, std::int64_t stages) {
  return Balance(costs, static_cast<std::size_t>(stages)).find();
}

}  // namespace trainscope
