// Batch tiles: in a tiled section of a program, calls that work example by example run one after
// the other on a slice of the batch, each thread on its own. Threads then meet at the section's end
// instead of after each call, and find in their caches what they wrote themselves.
#pragma once

#include <cstdint>

#include "engine/machine/machine.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"

namespace trainscope {

struct BatchTileOptions {
  // An op is short when its FLOPs and bytes should take no longer on one core than so many forks:
  // of longer ones the wait is a small share, and matmuls would pack their weights once a thread.
  double short_forks = 128.0;
  std::int64_t least_ops = 3;  // of a section
  // Sections are for steps of short ops: these must be this share of all, without the update.
  double least_share = 0.5;
  // Tiles are at different ops at a time, so that buffers live as long as their section. There are
  // no sections where the arena would grow by more than this many bytes and this share of it.
  std::int64_t most_bytes = std::int64_t{4} << 20;
  double most_growth = 0.25;
  KernelChoice kernels = KernelChoice::kFastest;
  Machine machine = default_machine();
};

// Finds sections among the calls of a program with several threads: neighbours in one phase,
// each with a sharding in its row (engine/ir/op_traits.h) that gives slices of its results for
// slices of its inputs ([N, ...] cut along N), or partials that are added up over the tiles
// (gradients by weights). Says whether there are any; if not, the program is as it was. Sums over
// examples are added in another order than without sections, and a kernel may be another one for a
// tile; the numbers are the same for the same number of threads.
bool add_batch_tiles(Program& program, const BatchTileOptions& options = {});

// What adds up partials, f32 ones; null where the device has nothing that does.
const Kernel* add_partials_kernel(const Device& device);

// Rounded up to whole cache lines.
std::int64_t padded_to_line(std::int64_t bytes);

}  // namespace trainscope
