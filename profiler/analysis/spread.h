// What steps take: in the middle, undisturbed, and how much that moves while a run goes on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainscope::profiler {

inline constexpr std::size_t kBlocks = 8;
inline constexpr std::size_t kLeastBlockSteps = 6;
inline constexpr std::size_t kLeastBlocks = 4;  // below: too few to say how blocks differ

// Of the nanoseconds that a row takes in each step, in the order of the steps.
struct Spread {
  double median = 0.0;
  double deviation = 0.0;  // median absolute deviation: half of the steps are nearer to the median
  std::size_t count = 0;
  // Undisturbed: low_share() of the steps take no longer. Other programs, interrupts and a
  // hypervisor only ever add time, to some steps and not to others, so this varies less from run to
  // run than the median does; what makes every step slower adds to it all the same.
  double low = 0.0;
  // How far `low` moves from one block of steps to the next, as a share of it: a standard deviation
  // (1.4826 median absolute ones). A machine changes in the course of seconds, not from step to
  // step, so more steps of one run say no more about what the next run will take; the square root
  // of their number has no place here. Of few steps it is the standard error of their median.
  double drift = 0.0;
  // `low` of each of at most kBlocks blocks of steps, one behind the other: of one run, where none
  // is 0; empty where the steps are too few for kLeastBlocks of `least_block_steps` each.
  std::vector<double> block_lows = {};
  // Of several runs of one program `low` is the geometric mean of what each has, and `drift` its
  // standard error: how they drift, and how far they are apart, over the root of their number.
  std::size_t runs = 0;
};
Spread spread_of(std::span<const double> step_ns, std::size_t least_block_steps = kLeastBlockSteps);
// The steps of several runs, one behind the other, so many of each; empty: they are of one run.
Spread spread_of(std::span<const double> step_ns, std::span<const std::size_t> run_steps);

// Of so many steps: a tenth, or what is left of it by kLowSteps where there are many more, but a
// hundredth at least. The nearer to the least, the less does it vary from run to run; the very
// least is one step's luck.
double low_share(std::size_t steps);
inline constexpr double kLowShare = 0.1;
inline constexpr double kLeastLowShare = 0.01;
inline constexpr double kLowSteps = 4.0;
// Standard errors of a mean in that of a median, of a normal distribution.
inline constexpr double kMedianError = 1.253;

}  // namespace trainscope::profiler
