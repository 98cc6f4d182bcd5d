// Pairs rows by key, and by what each trace says that values are named there.
#include "profiler/numerics/tensor_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/numerics/indexed_trace.h"
#include "profiler/numerics/tensor_limits.h"

namespace trainscope::profiler {
namespace {

bool is_integer(const TraceRow& row) {
  return row.dtype.starts_with('i') || row.dtype.starts_with('u') || row.dtype == "bool";
}

std::vector<std::int64_t> common_steps(const Trace& a, const Trace& b) {
  std::vector<std::int64_t> steps;
  std::ranges::set_intersection(a.steps(), b.steps(), std::back_inserter(steps));
  if (!steps.empty()) return steps;
  throw Error(ErrorCode::kUsage, "the traces have no step in common")
      .hint("record the same steps: --record-steps");
}

// What both say that they read in these steps, ascending.
void check_inputs(const IndexedTrace& a, const IndexedTrace& b,
                  const std::vector<std::int64_t>& steps, const SideNames& names) {
  for (std::size_t i = 0; i < a.trace().rows().size(); ++i) {
    const TraceRow& row = a.row(i);
    if (row.kind != TraceKind::kInput || !std::ranges::binary_search(steps, row.step)) continue;
    const auto other = b.find(row.step, row.micro_batch, row.key());
    if (!other) continue;
    const double apart = estimated_distance(a.trace().sketch(i), b.trace().sketch(*other));
    const bool same =
        row.statistics.count == b.row(*other).statistics.count && apart <= 1e-6 * row.statistics.l2;
    require(same, ErrorCode::kUsage,
            "the traces are of different batches: input '{}' of step {} is {} with mean {:.6g} in "
            "{}, {} with mean {:.6g} in {}",
            printable(row.value), row.step, row.shape, row.statistics.mean, names.a,
            b.row(*other).shape, b.row(*other).statistics.mean, names.b);
  }
}

// From norms and the norm of the difference, by the law of cosines.
double estimated_cosine(double x, double y, double apart) {
  if (x <= 0.0 || y <= 0.0) return 1.0;
  return std::clamp((x * x + y * y - apart * apart) / (2.0 * x * y), -1.0, 1.0);
}

class Comparer {
 public:
  Comparer(const Trace& a, const Trace& b, std::int64_t begun, const SideNames& names)
      : a_(a), b_(b), limits_(a, b, begun), names_(names) {}

  TensorComparison run() {
    check_models();
    result_.steps = common_steps(a_.trace(), b_.trace());
    check_inputs(a_, b_, result_.steps, names_);
    same_program_ = own_rows(a_.trace()) == own_rows(b_.trace());
    for (std::size_t i = 0; i < a_.trace().rows().size(); ++i) add(i);
    find_unpaired();
    result_.measured = limits_.measured();
    result_.find_first();
    return std::move(result_);
  }

 private:
  void check_models() const {
    require(a_.trace().header().sketch_seed == b_.trace().header().sketch_seed, ErrorCode::kUsage,
            "the traces' sketches have different seeds: {} has {}, {} has {}", names_.a,
            a_.trace().header().sketch_seed, names_.b, b_.trace().header().sketch_seed);
    const std::string& a = a_.trace().header().model;
    const std::string& b = b_.trace().header().model;
    if (a.empty() || b.empty() || a == b) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("the traces are of different models: {} of {}, {} of {}", names_.a, a,
                            names_.b, b))
        .hint("these are hashes of the model files: export once, and train that file twice");
  }

  // Before the first common step there may be what both begin with.
  bool is_common(std::int64_t step) const {
    return step < result_.steps.front() || std::ranges::binary_search(result_.steps, step);
  }

  double distance(std::size_t a, std::size_t b) const {
    return estimated_distance(a_.trace().sketch(a), b_.trace().sketch(b));
  }

  void add(std::size_t index) {
    const TraceRow& row = a_.row(index);
    if (!is_common(row.step) || (row.kind == TraceKind::kOwn && !same_program_)) return;
    std::optional<std::size_t> other = b_.find(row.step, row.micro_batch, row.key());
    if (!other) other = by_other_name(row);
    if (!other || !paired_.insert(*other).second) return;
    ComparedTensor tensor{.row_a = index, .row_b = *other, .key = row.key()};
    judge(row, b_.row(*other), tensor);
    result_.tensors.push_back(std::move(tensor));
  }

  // What values are named that an engine alone has, and made by, in the first common step: numbers
  // in these names mean others in another program.
  std::vector<std::pair<std::string, std::string>> own_rows(const Trace& trace) const {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const TraceRow& row : trace.rows()) {
      if (row.kind != TraceKind::kOwn || row.step != result_.steps.front()) continue;
      rows.emplace_back(row.value, row.op);
    }
    return rows;
  }

  // The row of B that A has under this row's name: B's name is one that A says has these elements.
  std::optional<std::size_t> by_other_name(const TraceRow& row) {
    if (names_of_a_.empty()) {
      for (const TraceName& name : a_.trace().names()) {
        if (!name.row.empty()) names_of_a_.emplace(name.row, name.value);
      }
    }
    const auto [begin, end] = names_of_a_.equal_range(row.key());
    for (auto it = begin; it != end; ++it) {
      const auto found = b_.find(row.step, row.micro_batch, it->second);
      if (found) return found;
    }
    return std::nullopt;
  }

  void judge(const TraceRow& a, const TraceRow& b, ComparedTensor& tensor) {
    const TensorStatistics& x = tensor.statistics_a = a.statistics;
    const TensorStatistics& y = tensor.statistics_b = b.statistics;
    if (x.count != y.count) {
      tensor.verdict = TensorVerdict::kShape;
      return;
    }
    if (x.nan != y.nan || x.positive_infinite != y.positive_infinite ||
        x.negative_infinite != y.negative_infinite) {
      tensor.verdict = TensorVerdict::kSpecial;
      return;
    }
    const double norm = std::max(x.l2, y.l2);
    double error = distance(tensor.row_a, tensor.row_b);
    const auto full_a = a_.full(a);
    const auto full_b = b_.full(b);
    tensor.cosine = estimated_cosine(x.l2, y.l2, error);
    if (full_a && full_b && full_a->elements() == full_b->elements()) {
      tensor.elements = element_errors(*full_a, *full_b);
      error = tensor.elements->l2;
      tensor.cosine = tensor.elements->cosine;
      if (has_kink(a.op) || has_kink(b.op)) tensor.kink_flips = tensor.elements->sign_flips;
    }
    tensor.relative = norm > 0.0 ? error / norm : 0.0;
    if (a.kind != TraceKind::kOwn) {
      tensor.limit = is_integer(a) ? 0.0 : limits_.of(a, norm, move_of(tensor));
    }
    if (const auto truth = limits_.truth(a)) {
      tensor.error_a = limits_.error_from_truth(*truth, a_.trace().sketch(tensor.row_a));
      tensor.error_b = limits_.error_from_truth(*truth, b_.trace().sketch(tensor.row_b));
    }
    const bool same = tensor.relative == 0.0;
    tensor.verdict = same                               ? TensorVerdict::kSame
                     : !tensor.limit                    ? TensorVerdict::kUnjudged
                     : tensor.relative <= *tensor.limit ? TensorVerdict::kWithin
                                                        : TensorVerdict::kBeyond;
  }

  // How far a parameter went in the step, in the trace where it went further; none where neither
  // has the step before.
  std::optional<double> move_of(const ComparedTensor& tensor) const {
    const auto a = move_in(a_, tensor.row_a);
    const auto b = move_in(b_, tensor.row_b);
    return a && b ? std::max(*a, *b) : a ? a : b;
  }
  static std::optional<double> move_in(const IndexedTrace& trace, std::size_t index) {
    const TraceRow& row = trace.row(index);
    if (row.kind != TraceKind::kParameter || row.step == 0) return std::nullopt;
    const auto before = trace.find(row.step - 1, 0, row.key());
    if (!before) return std::nullopt;
    return estimated_distance(trace.trace().sketch(index), trace.trace().sketch(*before));
  }

  void find_unpaired() {
    std::unordered_set<std::size_t> paired_a;
    for (const ComparedTensor& tensor : result_.tensors) paired_a.insert(tensor.row_a);
    const std::int64_t step = result_.steps.front();
    const auto note = [&](const IndexedTrace& of, const IndexedTrace& other, const auto& paired,
                          std::vector<std::string>& list) {
      for (std::size_t i = 0; i < of.trace().rows().size(); ++i) {
        const TraceRow& row = of.row(i);
        if (row.step != step || row.kind == TraceKind::kOwn || paired.contains(i)) continue;
        list.push_back(row.key());
        if (other.accounts_for(row.key())) ++result_.accounted;
      }
    };
    note(a_, b_, paired_a, result_.only_a);
    note(b_, a_, paired_, result_.only_b);
  }

  IndexedTrace a_;
  IndexedTrace b_;
  TensorLimits limits_;
  SideNames names_;
  TensorComparison result_;
  bool same_program_ = false;
  std::unordered_set<std::size_t> paired_;  // rows of B
  std::multimap<std::string, std::string> names_of_a_;
};

}  // namespace

std::string_view name_of(TensorVerdict verdict) {
  constexpr std::string_view kNames[] = {"same",   "within",  "unjudged",
                                         "beyond", "special", "shape"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::size_t TensorComparison::faults() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      tensors, [](const ComparedTensor& tensor) { return is_fault(tensor.verdict); }));
}

void TensorComparison::find_first() {
  const auto found = std::ranges::find_if(
      tensors, [](const ComparedTensor& tensor) { return is_fault(tensor.verdict); });
  first = found == tensors.end() ? std::nullopt
                                 : std::optional(static_cast<std::size_t>(found - tensors.begin()));
}

bool has_kink(std::string_view op) {
  return op.find("Relu") != std::string_view::npos;  // LeakyRelu, and what is fused with one
}

void require_same_batches(const Trace& a, const Trace& b) {
  check_inputs(IndexedTrace(a), IndexedTrace(b), common_steps(a, b), {});
}

TensorComparison compare_tensors(const Trace& a, const Trace& b, std::int64_t begun,
                                 const SideNames& names) {
  return Comparer(a, b, begun, names).run();
}

}  // namespace trainscope::profiler
