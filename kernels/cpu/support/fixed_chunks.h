// A kernel as one-thread calls on a fixed number of chunks of the batch. The chunks depend on the
// shapes alone, whatever the number of threads that compute them, so the bits do too: what a
// library does inside one chunk it does on one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/parallel_chunks.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {

// How a kernel's work divides along axis 0. Inputs that are not sliced go to every chunk whole.
struct FixedSplit {
  std::array<bool, 3> slices_input{};
  // The output is cut as the sliced inputs are; else the chunks' results are added in their order.
  bool slices_output = true;
};

// --- How it is done ------------------------------------------------------------------------------

inline constexpr std::int64_t kMostFixedChunks = 8;
inline constexpr std::size_t kMostChunkInputs = 3;
// Results that wait for their sum; with larger ones there are fewer chunks.
inline constexpr std::size_t kMostPartialBytes = std::size_t{64} << 20;
constexpr std::size_t chunk_aligned(std::size_t bytes) { return round_up(bytes, 64); }

struct FixedChunksState {
  std::vector<Prepared> chunks;
  std::vector<std::int64_t> begins;  // of the chunks along axis 0, and the end
  std::size_t chunk_workspace_bytes = 0;
  std::size_t partial_bytes = 0;  // 0: chunks write the output itself
};

// Rows [begin, end) of a tensor; its data may still be null.
inline TensorView chunk_of(const TensorView& whole, std::int64_t begin, std::int64_t end) {
  TensorView chunk = whole;
  chunk.type.shape[0] = end - begin;
  if (whole.data != nullptr) {
    const auto row_bytes = static_cast<std::int64_t>(whole.type.bytes()) / whole.type.shape[0];
    chunk.data = static_cast<std::byte*>(whole.data) + begin * row_bytes;
  }
  return chunk;
}

// The views that chunk [begin, end) of a kernel works on.
struct ChunkViews {
  std::array<TensorView, kMostChunkInputs> inputs;
  std::array<TensorView, 1> output;
  std::size_t input_count = 0;

  template <class Args>
  ChunkViews(const Args& args, const FixedSplit& split, std::int64_t begin, std::int64_t end)
      : input_count(args.inputs.size()) {
    for (std::size_t i = 0; i < input_count; ++i) {
      const bool sliced = split.slices_input[i] && args.inputs[i].present;
      inputs[i] = sliced ? chunk_of(args.inputs[i], begin, end) : args.inputs[i];
    }
    output[0] = split.slices_output ? chunk_of(args.outputs[0], begin, end) : args.outputs[0];
  }
  std::span<const TensorView> all_inputs() const { return {inputs.data(), input_count}; }
};

// Examples in the batch: the first sliced input's.
inline std::int64_t batch_of(std::span<const TensorView> inputs, const FixedSplit& split) {
  std::size_t i = 0;
  while (!split.slices_input[i]) ++i;
  return inputs[i].type.shape[0];
}

inline std::int64_t fixed_chunk_count(const PrepareArgs& args, const FixedSplit& split) {
  std::int64_t most = kMostFixedChunks;
  if (!split.slices_output) {
    const std::size_t bytes = std::max<std::size_t>(1, args.outputs[0].type.bytes());
    most = std::min(most, static_cast<std::int64_t>(kMostPartialBytes / bytes));
  }
  return std::clamp<std::int64_t>(batch_of(args.inputs, split), 1, std::max<std::int64_t>(1, most));
}

template <const Kernel& kBase, const FixedSplit& kSplit>
Support supports_chunks(const PrepareArgs& args) {
  const bool empty =
      std::any_of(args.inputs.begin(), args.inputs.end(),
                  [](const TensorView& view) { return view.present && view.elements() == 0; });
  if (empty || args.outputs[0].elements() == 0) return {"a tensor has no elements"};
  if (args.inputs.size() > kMostChunkInputs) return {"more inputs than are divided into chunks"};
  const std::int64_t batch = batch_of(args.inputs, kSplit);
  const std::int64_t chunks = fixed_chunk_count(args, kSplit);
  // Chunks of two sizes at most: the first ones may be one longer.
  for (const std::int64_t size : {batch / chunks, (batch + chunks - 1) / chunks}) {
    const ChunkViews views(args, kSplit, 0, size);
    const PrepareArgs chunk{
        .params = args.params, .inputs = views.all_inputs(), .outputs = views.output, .threads = 1};
    const Support support = kBase.supports == nullptr ? Support{} : kBase.supports(chunk);
    if (!support) return support;
  }
  return {};
}

template <const Kernel& kBase, const FixedSplit& kSplit>
Prepared prepare_chunks(const PrepareArgs& args) {
  auto state = std::make_shared<FixedChunksState>();
  const std::int64_t batch = batch_of(args.inputs, kSplit);
  const std::int64_t chunks = fixed_chunk_count(args, kSplit);
  state->begins.push_back(0);
  for (std::int64_t p = 0; p < chunks; ++p) {
    const std::int64_t begin = state->begins.back();
    const std::int64_t end = begin + batch / chunks + (p < batch % chunks ? 1 : 0);
    const ChunkViews views(args, kSplit, begin, end);
    state->chunks.push_back(kBase.prepare({.params = args.params,
                                           .inputs = views.all_inputs(),
                                           .outputs = views.output,
                                           .threads = 1}));
    state->begins.push_back(end);
    state->chunk_workspace_bytes =
        std::max(state->chunk_workspace_bytes, chunk_aligned(state->chunks.back().workspace_bytes));
  }
  if (!kSplit.slices_output && chunks > 1) {
    state->partial_bytes = chunk_aligned(args.outputs[0].type.bytes());
  }
  const std::size_t bytes =
      static_cast<std::size_t>(chunks) * (state->chunk_workspace_bytes + state->partial_bytes);
  return {.workspace_bytes = bytes, .state = std::move(state)};
}

// output = partial 0 + partial 1 + ..., element by element in this order.
inline void add_partials(const RunArgs& args, const FixedChunksState& state,
                         const std::byte* partials) {
  auto* output = args.outputs[0].as<float>();
  const std::size_t chunks = state.chunks.size();
  parallel_for(args.threads, args.outputs[0].elements(), kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 const auto* first = reinterpret_cast<const float*>(partials);
                 std::copy(first + begin, first + end, output + begin);
                 for (std::size_t p = 1; p < chunks; ++p) {
                   const auto* more =
                       reinterpret_cast<const float*>(partials + p * state.partial_bytes);
                   for (std::int64_t i = begin; i < end; ++i) output[i] += more[i];
                 }
               });
}

template <const Kernel& kBase, const FixedSplit& kSplit>
void run_chunks(const RunArgs& args) {
  const FixedChunksState& state = *static_cast<const FixedChunksState*>(args.state);
  auto* workspaces = static_cast<std::byte*>(args.workspace);
  const auto chunks = static_cast<std::int64_t>(state.chunks.size());
  std::byte* partials = workspaces + static_cast<std::size_t>(chunks) * state.chunk_workspace_bytes;
  parallel_chunks(args.threads, chunks, [&](std::int64_t p) {
    const auto at = static_cast<std::size_t>(p);
    ChunkViews views(args, kSplit, state.begins[at], state.begins[at + 1]);
    if (state.partial_bytes > 0) views.output[0].data = partials + at * state.partial_bytes;
    kBase.run({.params = args.params,
               .inputs = views.all_inputs(),
               .outputs = views.output,
               .workspace = workspaces + at * state.chunk_workspace_bytes,
               .state = state.chunks[at].state.get(),
               .threads = 1,
               .call = args.call});
  });
  if (state.partial_bytes > 0) add_partials(args, state, partials);
}

// That of the chunks, and of the sum of their results.
template <const Kernel& kBase, const FixedSplit& kSplit>
Estimate estimate_chunks(const PrepareArgs& args, const Estimate& definition) {
  const std::int64_t batch = batch_of(args.inputs, kSplit);
  const std::int64_t chunks = fixed_chunk_count(args, kSplit);
  Work work;
  for (std::int64_t p = 0; p < chunks; ++p) {
    const std::int64_t size = batch / chunks + (p < batch % chunks ? 1 : 0);
    const ChunkViews views(args, kSplit, 0, size);
    work += Work(kBase.estimate(
        {.params = args.params,
         .inputs = views.all_inputs(),
         .outputs = views.output,
         .threads = 1},
        share_of(definition, static_cast<double>(size) / static_cast<double>(batch))));
  }
  if (!kSplit.slices_output && chunks > 1) {
    const auto added = static_cast<double>(chunks) * bytes_of(args.outputs[0]);
    work += {multiplied(chunks - 1, args.outputs[0].elements()), added, bytes_of(args.outputs[0])};
  }
  return work.estimate();
}

// An f32 kernel with one output made of `kBase`, which must be good for one thread and have an
// estimate.
template <const Kernel& kBase, const FixedSplit& kSplit>
constexpr Kernel in_fixed_chunks(std::string_view name) {
  return {.name = name,
          .supports = supports_chunks<kBase, kSplit>,
          .prepare = prepare_chunks<kBase, kSplit>,
          .run = run_chunks<kBase, kSplit>,
          .estimate = estimate_chunks<kBase, kSplit>};
}

}  // namespace trainscope::cpu
