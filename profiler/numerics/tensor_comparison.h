// Two traces of one model on the same batches: each tensor's error and limit, and the first that is
// beyond its limit.
//
// Errors are L2 norms of differences, relative to the larger norm: exact where both traces have all
// elements, else estimated from sketches. Where a trace has an oracle, the limit at its step is 8
// times the noise that was measured, and at least 8 times 2^-23; of gradients also 8 * 1e-8 of the
// norm of all gradients, which settles those that vanish in exact arithmetic. Rounding adds up, so
// some steps behind what both began with alike the limit is so many times that. Without an oracle
// noise is taken to be kUnmeasuredNoise, and gradients are those of both traces. A value that an
// engine alone has is of no limit: nobody measured its noise, and a mistake in it shows in what is
// made of it. docs/numerics.md says why.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/numerics/element_errors.h"
#include "profiler/numerics/trace.h"

namespace trainscope::profiler {

enum class TensorVerdict : std::uint8_t {
  kSame,      // bits, or all that sketches and statistics show
  kWithin,    // its limit
  kUnjudged,  // differs, and has no limit
  kBeyond,    // its limit
  kSpecial,   // NaN or infinities are not in both alike
  kShape,     // the numbers of elements differ
};
std::string_view name_of(TensorVerdict verdict);
inline bool is_fault(TensorVerdict verdict) { return verdict >= TensorVerdict::kBeyond; }

struct ComparedTensor {
  std::size_t row_a = 0;
  std::size_t row_b = 0;
  std::string key;  // as A has it
  TensorStatistics statistics_a = {};
  TensorStatistics statistics_b = {};
  double relative = 0.0;             // error
  std::optional<double> limit = {};  // of it; none: of a value that an engine alone has
  TensorVerdict verdict = TensorVerdict::kSame;
  // From the truth, where the oracle has it: relative errors of A and of B.
  std::optional<double> error_a = {};
  std::optional<double> error_b = {};
  std::optional<ElementErrors> elements = {};
  // Of the angle between both: of all elements, else estimated from sketches.
  double cosine = 1.0;
  // Where an op with a kink at 0 made it and all elements are there: those on other sides of it.
  std::optional<std::int64_t> kink_flips = {};

  double over_limit() const { return limit && *limit > 0.0 ? relative / *limit : 0.0; }
};

struct TensorComparison {
  std::vector<ComparedTensor> tensors;  // by step, in A's order
  std::optional<std::size_t> first;     // the first fault
  std::vector<std::int64_t> steps;      // that both have
  std::vector<std::string> only_a;      // keys of the first common step
  std::vector<std::string> only_b;
  std::size_t accounted = 0;  // of only_a and only_b: values of which the other trace says a fate
  bool measured = false;      // limits are of an oracle

  std::size_t faults() const;
  // Looks for the first one anew: tensors have changed.
  void find_first();
};

// Whether an op's derivative jumps where its result passes 0: Relu and its family. Others, such as
// Clip and Max, have their kinks elsewhere, where signs do not show them.
bool has_kink(std::string_view op);

// What messages call the two.
struct SideNames {
  std::string a = "A";
  std::string b = "B";
};

// Throws kUsage, naming the difference, unless what both read in their common steps is the same, as
// far as both say it; or there is no common step.
void require_same_batches(const Trace& a, const Trace& b);

// Throws kUsage, naming the difference, for traces of different models, batches or seeds of
// sketches, or without a common step. `begun`: the step after which both had the same parameters
// and states, 0 where they begin with the same.
TensorComparison compare_tensors(const Trace& a, const Trace& b, std::int64_t begun = 0,
                                 const SideNames& names = {});

}  // namespace trainscope::profiler
