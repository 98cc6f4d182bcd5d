// ProgramBuilder: the one way to a program. What computes each node, then which values share bytes
// and how long, then a place for every buffer, then the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/plan/lifetimes.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"

namespace trainscope {

// How a node is computed batch tile by batch tile, each on one thread.
struct Tiling {
  const Kernel* kernel = nullptr;
  OtherKernels others = {};
  Params params = {};                   // of one tile
  std::vector<Prepared> prepared = {};  // by tile
  std::vector<TileSlice> inputs = {};   // by input of the node
  std::vector<TileSlice> outputs = {};
  // Of one tile: they lie one after the other, behind them the partials of all tiles but the first.
  std::int64_t workspace_bytes = 0;
};

// What computes one node. Its place in the list is its time.
struct Launch {
  NodeId node = kNoNode;
  const Kernel* kernel = nullptr;
  OtherKernels others = {};
  Params params = {};
  Prepared prepared = {};
  std::shared_ptr<const CallBody> body = {};
  std::int64_t workspace_bytes = 0;  // in a section of all tiles
  BufferId workspace = kNoBuffer;
  std::optional<Tiling> tiling = {};
};

// Launches at the times [begin, end) whose batch tiles run beside each other.
struct TimeSection {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class ProgramBuilder {
 public:
  // Of a graph. The device is null where the program is to be a plan alone.
  ProgramBuilder(Graph graph, DeviceHandle device, const LowerOptions& options);
  // Of a program that is placed already: its launches and lifetimes, to be changed.
  explicit ProgramBuilder(const Program& placed);

  // A kernel for each node that is no view. Fails with kBadInput, naming every op and dtype without
  // one, with the names of its nodes.
  void choose_kernels();
  // Launches without kernels. `workspaces`: bytes by NodeId; nodes beyond its end have none.
  void leave_out_kernels(std::span<const std::int64_t> workspaces);
  // So many bytes more are alive until the update phase begins.
  void hold(std::string label, std::int64_t bytes);
  // Launches at these times have a tiling. What touches a section lives as long as it does.
  void tile(std::span<const TimeSection> sections);

  std::vector<Launch>& launches() { return launches_; }

  // Fails with kOutOfMemory where no placement is found.
  Program build();
  // None in that case.
  std::optional<Program> try_build();

 private:
  // Whether the node has a kernel, or a body.
  bool prepare(const Node& node, Launch& launch) const;
  void add_body(const Node& node, Launch& launch) const;
  void find_buffers();
  void add_workspaces();
  void live_through_sections();
  std::string place(Space space);
  std::string place();
  Program program_;
  LowerOptions options_;
  std::vector<Launch> launches_;
  std::vector<TimeSection> sections_;
  std::vector<StateCopy> copies_;
  bool has_buffers_ = false;
  std::optional<PlannedBuffer> held_;
};

}  // namespace trainscope
