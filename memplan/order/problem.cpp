// Checks of order problems and of their answers.
#include "memplan/order/problem.h"

#include <algorithm>

#include "memplan/order/live_set.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;

string op_text(int32_t op) { return "op #" + std::to_string(op); }
string value_text(int32_t value) { return "value #" + std::to_string(value); }

class Checker {
 public:
  explicit Checker(const OrderProblem& problem)
      : problem_(problem), maker_(problem.values.size(), kNobody) {}

  string run() {
    if (problem_.ops.size() > kMost || problem_.values.size() > kMost) return "too many ops";
    for (const OrderValue& value : problem_.values) {
      if (value.bytes < 0 || add_overflows(value.bytes)) return "the bytes of a value are no size";
    }
    find_makers();
    for (size_t i = 0; i < problem_.ops.size(); ++i) {
      const string wrong = twice_.empty() ? check_op(static_cast<int32_t>(i)) : twice_;
      if (!wrong.empty()) return wrong;
    }
    return twice_;
  }

 private:
  static constexpr int32_t kNobody = -1;
  static constexpr size_t kMost = size_t{1} << 30;

  bool add_overflows(int64_t bytes) { return __builtin_add_overflow(total_, bytes, &total_); }
  bool is_value(int32_t v) const {
    return v >= 0 && static_cast<size_t>(v) < problem_.values.size();
  }

  void find_makers() {
    for (size_t i = 0; i < problem_.ops.size(); ++i) {
      for (int32_t v : problem_.ops[i].makes) {
        if (!is_value(v)) continue;
        int32_t& maker = maker_[static_cast<size_t>(v)];
        if (maker != kNobody) twice_ = value_text(v) + " is made twice";
        maker = static_cast<int32_t>(i);
      }
    }
  }

  string check_op(int32_t index) {
    const OrderOp& op = problem_.ops[static_cast<size_t>(index)];
    if (op.workspace_bytes < 0 || add_overflows(op.workspace_bytes)) {
      return "the workspace of " + op_text(index) + " is no size";
    }
    if (op.phase < phase_) return op_text(index) + " is of an earlier phase than the op before it";
    phase_ = op.phase;
    for (int32_t v : op.makes) {
      if (!is_value(v)) return op_text(index) + " makes a value that does not exist";
    }
    for (int32_t v : op.reads) {
      if (!is_value(v)) return op_text(index) + " reads a value that does not exist";
      if (std::count(op.reads.begin(), op.reads.end(), v) > 1) {
        return op_text(index) + " reads " + value_text(v) + " twice";
      }
      if (maker_[static_cast<size_t>(v)] >= index) {
        return op_text(index) + " reads " + value_text(v) + ", which is made later";
      }
    }
    for (int32_t before : op.after) {
      if (before < 0 || before >= index) return op_text(index) + " comes after no earlier op";
    }
    for (const OrderInPlace& pair : op.in_place) {
      const bool reads = std::count(op.reads.begin(), op.reads.end(), pair.read) > 0;
      const bool makes = std::count(op.makes.begin(), op.makes.end(), pair.made) > 0;
      if (!reads || !makes) return op_text(index) + " shares bytes of values it has not";
    }
    return {};
  }

  const OrderProblem& problem_;
  std::vector<int32_t> maker_;
  string twice_;
  int64_t total_ = 0;
  int32_t phase_ = 0;
};

}  // namespace

std::optional<string> find_order_problem_error(const OrderProblem& problem) {
  const string wrong = Checker(problem).run();
  return wrong.empty() ? std::nullopt : std::optional(wrong);
}

std::vector<int64_t> order_profile(const OrderProblem& problem, std::span<const int32_t> order) {
  const OrderGraph graph(problem);
  LiveSet live(graph);
  std::vector<int64_t> profile;
  profile.reserve(order.size());
  for (int32_t op : order) {
    profile.push_back(live.effect_of(op).during_bytes);
    live.run(op);
  }
  return profile;
}

int64_t order_peak_bytes(const OrderProblem& problem, std::span<const int32_t> order) {
  int64_t peak = 0;
  for (int64_t bytes : order_profile(problem, order)) peak = std::max(peak, bytes);
  return peak;
}

std::optional<string> find_order_error(const OrderProblem& problem,
                                       std::span<const int32_t> order) {
  const size_t count = problem.ops.size();
  std::vector<size_t> position(count, count);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || static_cast<size_t>(order[i]) >= count) return "an op does not exist";
    size_t& at = position[static_cast<size_t>(order[i])];
    if (at != count) return op_text(order[i]) + " runs twice";
    at = i;
    const int32_t phase = problem.ops[static_cast<size_t>(order[i])].phase;
    if (i > 0 && phase < problem.ops[static_cast<size_t>(order[i - 1])].phase) {
      return op_text(order[i]) + " runs after a later phase";
    }
  }
  if (order.size() != count) return "an op is missing";
  const OrderGraph graph(problem);
  for (size_t i = 0; i < count; ++i) {
    for (int32_t next : graph.successors[i]) {
      if (position[static_cast<size_t>(next)] < position[i]) {
        return op_text(next) + " runs before " + op_text(static_cast<int32_t>(i));
      }
    }
  }
  return std::nullopt;
}

}  // namespace trainscope::memplan
