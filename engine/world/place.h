// Places a step that has no kernels: the same lifetimes and the same planner as lower().
#pragma once

#include <cstdint>
#include <span>

#include "engine/ir/graph.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"

namespace trainscope {

// `workspaces`: bytes by NodeId; nodes beyond its end have none. The program's calls have no
// kernels: it can be planned with, not run. `held_bytes` more are alive until the update
// phase begins.
Program place_graph(Graph graph, std::span<const std::int64_t> workspaces,
                    const LowerOptions& options, std::int64_t held_bytes = 0);

std::int64_t bytes_of(const Graph& graph, ValueId v);

// What eager PyTorch holds at most, without its allocator's gaps: every result has bytes of its own
// from its node to its last reader, in blocks of 512 bytes (its CUDA allocator's); parameters,
// states, and gradients from their first write to the step's end; what `forward` returns until
// then; once more the scores of a cross entropy, whose logarithms are saved; while the optimizer
// runs, as many bytes as the parameters that it updates have (torch.optim's foreach default, of
// AdamW and others with states). Workspaces are left out.
std::int64_t eager_peak_bytes(const Graph& graph);

}  // namespace trainscope
