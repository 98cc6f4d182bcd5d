// One call for each launch, or one for each batch tile; state copies behind their phase.
#include "engine/plan/calls.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/plan/batch_tiles.h"
#include "engine/plan/streams.h"

namespace trainscope {
namespace {

class CallMaker {
 public:
  CallMaker(Program& program, std::span<Launch> launches, std::span<const StateCopy> copies)
      : program_(program), launches_(launches), copies_(copies) {}

  void run(std::span<const TimeSection> sections) {
    auto section = sections.begin();
    bool in_update = false;
    for (std::int64_t time = 0; time < program_.times;) {
      if (!in_update && time == program_.update_time) {
        begin_update();
        in_update = true;
      }
      if (section != sections.end() && section->begin == time) {
        add_section(*section);
        time = section->end;
        ++section;
      } else {
        add_launch(time++);
      }
    }
    if (!in_update) begin_update();
    add_copies(Phase::kUpdate, Phase::kUpdate, program_.times);
  }

 private:
  CallId next() const { return CallId(static_cast<std::int32_t>(program_.calls.size())); }
  Launch& launch_at(std::int64_t time) { return launches_[static_cast<std::size_t>(time)]; }

  void begin_update() {
    add_copies(Phase::kForward, Phase::kBackward, program_.update_time);
    program_.update_begin = next();
  }

  Operand operand(ValueId v) const {
    if (v == kNoValue) return {};
    const PlannedValue& place = program_.place(v);
    return {.value = v,
            .buffer = place.buffer,
            .offset = place.offset,
            .type = program_.graph.value(v).type};
  }

  // Both elements are alive to the end of the phase: the copies have no time of their own.
  void add_copies(Phase first, Phase last, std::int64_t end) {
    for (const StateCopy& copy : copies_) {
      if (copy.phase < first || copy.phase > last) continue;
      program_.calls.push_back({.kind = CallKind::kStateCopy,
                                .node = program_.graph.value(copy.from).producer,
                                .phase = copy.phase,
                                .time = std::max<std::int64_t>(0, end - 1),
                                .inputs = {operand(copy.from)},
                                .outputs = {operand(copy.to)}});
    }
  }

  Call call_of(const Launch& launch, std::int64_t time) const {
    const Node& node = program_.graph.node(launch.node);
    Call call{.node = launch.node,
              .phase = node.phase,
              .time = time,
              .kernel = launch.kernel,
              .workspace = launch.workspace};
    for (ValueId v : node.inputs) call.inputs.push_back(operand(v));
    for (ValueId v : node.outputs) call.outputs.push_back(operand(v));
    return call;
  }

  void own_workspace(const Launch& launch) {
    if (launch.workspace == kNoBuffer) return;
    program_.buffers[static_cast<std::size_t>(launch.workspace)].call = next();
  }

  void add_launch(std::int64_t time) {
    Launch& launch = launch_at(time);
    own_workspace(launch);
    Call call = call_of(launch, time);
    if (launch.body) call.kind = CallKind::kProgram;
    call.others = std::move(launch.others);
    call.params = std::move(launch.params);
    call.prepared = std::move(launch.prepared);
    call.body = std::move(launch.body);
    program_.calls.push_back(std::move(call));
  }

  void add_section(const TimeSection& times) {
    const int tiles = program_.threads;
    TiledSection tiled{.begin = next(), .end = kNoCall, .tiles = tiles};
    std::vector<Call> sums;
    for (std::int64_t time = times.begin; time < times.end; ++time) {
      add_tiles(time, sums);
    }
    tiled.end = next();
    program_.sections.push_back(tiled);
    if (sums.empty()) return;
    tiled.begin = tiled.end;
    for (Call& sum : sums) {
      sum.time = times.end - 1;
      program_.calls.push_back(std::move(sum));
    }
    tiled.end = next();
    program_.sections.push_back(tiled);
  }

  // The node's tiles; what adds up their partials comes after the section.
  void add_tiles(std::int64_t time, std::vector<Call>& sums) {
    Launch& launch = launch_at(time);
    Tiling& tiling = *launch.tiling;
    own_workspace(launch);
    const std::size_t tiles = tiling.prepared.size();
    std::int64_t partials = static_cast<std::int64_t>(tiles) * tiling.workspace_bytes;
    std::vector<Call> calls;
    for (std::size_t t = 0; t < tiles; ++t) {
      Call call = call_of(launch, time);
      call.kernel = tiling.kernel;
      call.others = tiling.others;
      call.tile = static_cast<std::int32_t>(t);
      call.params = tiling.params;
      call.prepared = std::move(tiling.prepared[t]);
      call.workspace_offset = static_cast<std::int64_t>(t) * tiling.workspace_bytes;
      for (std::size_t k = 0; k < call.inputs.size(); ++k) {
        if (tiling.inputs[k] == TileSlice::kExamples) cut(call.inputs[k], t, tiles);
      }
      for (std::size_t k = 0; k < call.outputs.size(); ++k) {
        Operand& output = call.outputs[k];
        if (tiling.outputs[k] == TileSlice::kExamples) cut(output, t, tiles);
        if (tiling.outputs[k] != TileSlice::kPartial || output.value == kNoValue) continue;
        output.slice = TileSlice::kPartial;
        if (t == 0) continue;  // in the result's own bytes
        output.buffer = launch.workspace;
        output.offset = partials;
        partials += padded_to_line(static_cast<std::int64_t>(output.type.bytes()));
      }
      calls.push_back(std::move(call));
    }
    for (std::size_t k = 0; k < tiling.outputs.size(); ++k) {
      if (tiling.outputs[k] == TileSlice::kPartial) add_sums(calls, k, sums);
    }
    for (Call& call : calls) program_.calls.push_back(std::move(call));
  }

  // Tile t of a value [N, ...] that is cut along N.
  static void cut(Operand& operand, std::size_t t, std::size_t tiles) {
    if (operand.value == kNoValue) return;
    operand.slice = TileSlice::kExamples;
    operand.offset += static_cast<std::int64_t>(t * (operand.type.bytes() / tiles));
    operand.type.shape[0] /= static_cast<std::int64_t>(tiles);
  }

  // Each thread adds up the partials of output k, in the tiles' order, for a slice of its elements.
  void add_sums(const std::vector<Call>& calls, std::size_t k, std::vector<Call>& sums) const {
    if (calls[0].outputs[k].value == kNoValue) return;
    const auto tiles = static_cast<std::int64_t>(calls.size());
    const std::int64_t elements = calls[0].outputs[k].type.elements();
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t begin = elements * t / tiles;
      const std::int64_t count = elements * (t + 1) / tiles - begin;
      Call sum{.kind = CallKind::kAddPartials,
               .node = calls[0].node,
               .phase = calls[0].phase,
               .tile = static_cast<std::int32_t>(t),
               .kernel = add_partials_kernel(*program_.device)};
      for (const Call& call : calls) {
        Operand part = call.outputs[k];
        part.offset += begin * static_cast<std::int64_t>(size_of(part.type.dtype));
        part.type = {part.type.dtype, {count}};
        sum.inputs.push_back(part);
      }
      sum.outputs.push_back(sum.inputs.front());
      sum.outputs.front().slice = TileSlice::kElements;
      sums.push_back(std::move(sum));
    }
  }

  Program& program_;
  std::span<Launch> launches_;
  std::span<const StateCopy> copies_;
};

}  // namespace

void make_calls(Program& program, std::span<Launch> launches, std::span<const TimeSection> sections,
                std::span<const StateCopy> copies) {
  CallMaker(program, launches, copies).run(sections);
  assign_streams(program);
}

}  // namespace trainscope
