// When a sharded step is done: kernels on one stream, messages on another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/machine/machine.h"
#include "engine/recompute/recompute.h"
#include "engine/world/layout.h"

namespace trainscope {

struct MachineModel {
  const DeviceSpec* device = nullptr;
  Machine kernels;  // what those of the device reach
  Layout layout;
  // Set: values may wait in host memory; while one is on its way no kernel runs.
  std::optional<HostLink> link = {};
};

// By NodeId: the time of each node's kernel by the roofline, of a transfer to or from host memory
// by the link; 0 for messages and views.
std::vector<double> kernel_seconds(const Graph& graph, const MachineModel& machine);
// By NodeId: the time of each node that is a message, else 0.
std::vector<double> message_seconds(const Graph& graph, const MachineModel& machine);

struct StepTime {
  double seconds = 0.0;          // of the whole step
  double kernel_seconds = 0.0;   // the first stream is busy
  double message_seconds = 0.0;  // the second one is
  double sent_bytes = 0.0;       // by each device
};

// A message starts when the program gets to it, the one before it is done and so is what it sends;
// kernels wait for the messages whose result they read, and for no others. Gradients that are not
// scattered are summed by all-reduces of up to kBucketBytes each in the last micro-batch, while
// backward goes on; the optimizer waits for them. With sharded states the parameters are gathered
// after it. Forward and backward run once for each micro-batch, the update once.
StepTime step_time(const Graph& graph, const MachineModel& machine, std::int64_t micro_batches);

// Of the forward phase of one micro-batch.
double forward_seconds(const Graph& graph, const MachineModel& machine);

// DistributedDataParallel's default bucket.
inline constexpr std::int64_t kBucketBytes = 25 << 20;

}  // namespace trainscope
