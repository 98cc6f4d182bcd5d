// Chains: short ops that work example by example run one after the other on a part of the batch,
// each thread on its own part. Threads then meet at the end of a chain instead of after each op,
// and find in their caches what they wrote themselves.
#pragma once

#include <cstdint>

#include "engine/plan/lower.h"
#include "engine/plan/program.h"

namespace trainscope {

struct ChainOptions {
  // An op is short when its FLOPs and bytes should take no longer than this on one core, in
  // seconds. Of longer ones the wait is a small share, and products of matrices would pack their
  // weights once a thread.
  double short_seconds = 3e-4;
  std::size_t least_ops = 3;  // of a chain
  // Chains are for steps of short ops: they must be this share of all, without the update.
  double least_share = 0.5;
  // Parts are at different ops at a time, so that buffers live as long as their chain. There are no
  // chains where the arena would grow by more than this many bytes and this share of it.
  std::int64_t most_bytes = std::int64_t{4} << 20;
  double most_growth = 0.25;
  KernelChoice kernels = KernelChoice::kFastest;
};

// Finds chains among the instructions of a program with several threads: neighbours in one phase,
// each with a rule in engine/ops/rules/split_rules.h that gives parts of its results for parts of
// its inputs, or sums over the parts (gradients by weights). Says whether there are any; if not,
// the program is as it was. Sums over examples are added in another order than without chains, and
// a kernel may be another one for a part; the numbers are the same for the same number of threads.
bool add_chains(Program& program, const ChainOptions& options = {});

}  // namespace trainscope
