// Two streams, one pass over the program.
#include "engine/world/timeline.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/plan/lower.h"
#include "engine/recompute/costs.h"
#include "engine/world/collective_ops.h"
#include "engine/world/place.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

struct Message {
  Collective collective = Collective::kAllReduce;
  std::int64_t bytes = 0;  // of the whole tensor
  Group group;
};

bool is_message(const Node& node) {
  return node.op == &all_gather_op() || node.op == &reduce_scatter_op() ||
         node.op == &all_reduce_op() || node.op == &receive_op();
}

bool is_transfer(const Node& node) { return node.op->to_host || node.op->from_host; }

bool is_tied(const Node& node) { return node.attributes.text("group", "") == kTiedGroup; }

Group group_of(const Node& node, const MachineModel& machine) {
  const DeviceSpec& device = *machine.device;
  if (is_tied(node)) {
    return {.size = node.attributes.integer("devices", 2),
            .bytes_per_second = stage_link(device, machine.layout).bytes_per_second};
  }
  const bool tensor = node.attributes.text("group", "") == kTensorGroup;
  return tensor ? tensor_group(device, machine.layout) : data_group(device, machine.layout);
}

Message message_of(const Graph& graph, const Node& node, const MachineModel& machine) {
  Message message{.group = group_of(node, machine)};
  if (node.op == &receive_op()) {
    message = {.collective = Collective::kSend,
               .bytes = bytes_of(graph, node.outputs[0]),
               .group = stage_link(*machine.device, machine.layout)};
  } else if (node.op == &all_gather_op()) {
    message.collective = Collective::kAllGather;
    message.bytes = bytes_of(graph, node.outputs[0]);
  } else {
    message.collective =
        node.op == &all_reduce_op() ? Collective::kAllReduce : Collective::kReduceScatter;
    message.bytes = bytes_of(graph, node.inputs[0]);
  }
  return message;
}

class Streams {
 public:
  Streams(const Graph& graph, const MachineModel& machine)
      : graph_(graph),
        machine_(machine),
        order_(phase_order(graph)),
        kernels_(kernel_seconds(graph, machine)),
        ready_(graph.value_capacity(), 0.0),
        data_(data_group(*machine.device, machine.layout)) {
    for (const OptimizerNode& step : optimizer_nodes(graph)) {
      optimizers_.insert(step.node);
      if (data_.size == 1) continue;
      for (ValueId gradient : step.gradients) note_gradient(raw_gradient(graph, gradient));
      if (machine.layout.zero != 1 && machine.layout.zero != 2) continue;
      for (ValueId parameter : step.parameters) updated_bytes_ += bytes_of(graph, parameter);
    }
  }

  enum class Gradients : std::uint8_t { kLeft, kSummed };
  void forward() {
    gradients_now_ = Gradients::kLeft;
    for (NodeId id : order_) {
      if (graph_.node(id).phase == Phase::kForward) run(id, graph_.node(id));
    }
  }

  void forward_and_backward(Gradients gradients) {
    std::ranges::fill(ready_, 0.0);
    gradients_now_ = gradients;
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.phase == Phase::kUpdate) continue;
      run(id, node);
      if (gradients == Gradients::kSummed) sum_gradient(id);
    }
  }

  void update() {
    for (NodeId id : order_) {
      if (graph_.node(id).phase == Phase::kUpdate) run(id, graph_.node(id));
    }
    sum_bucket();
    wait_for_messages();
    send({.collective = Collective::kAllGather, .bytes = updated_bytes_, .group = data_}, 0.0);
    wait_for_messages();
  }

  StepTime time() const {
    StepTime time = time_;
    time.seconds = std::max(kernels_done_, messages_done_);
    return time;
  }

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  // Summed over the devices as a whole: a scattered one is a message of the program.
  void note_gradient(ValueId raw) {
    const NodeId producer = graph_.value(raw).producer;
    if (producer == kNoNode || graph_.node(producer).op == &reduce_scatter_op()) return;
    if (gradients_.insert(raw).second) gradients_of_[producer].push_back(raw);
  }

  void run(NodeId id, const Node& node) {
    double inputs = 0.0;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) inputs = std::max(inputs, ready_[index(v)]);
    }
    if (is_message(node) && is_tied(node) && gradients_now_ == Gradients::kLeft) {
      ready_[index(node.outputs[0])] = inputs;  // its own, added up so far
      return;
    }
    if (is_message(node)) {
      ready_[index(node.outputs[0])] = send(message_of(graph_, node, machine_), inputs);
      return;
    }
    if (node.op->is_view) {  // its bytes are there when those it shows are
      ready_[index(node.outputs[0])] = inputs;
      return;
    }
    if (optimizers_.contains(id)) {
      sum_bucket();
      wait_for_messages();
    }
    kernels_done_ = std::max(kernels_done_, inputs) + kernels_[index(id)];
    time_.kernel_seconds += kernels_[index(id)];
  }

  // What the kernels before it have made may be sent; the result's time.
  double send(const Message& message, double inputs) {
    const double seconds = collective_seconds(message.collective, message.bytes, message.group);
    if (message.bytes == 0 || seconds == 0.0) return inputs;
    messages_done_ = std::max({messages_done_, kernels_done_, inputs}) + seconds;
    time_.message_seconds += seconds;
    time_.sent_bytes += sent_bytes(message.collective, message.bytes, message.group);
    return messages_done_;
  }

  void sum_gradient(NodeId producer) {
    const auto found = gradients_of_.find(producer);
    if (found == gradients_of_.end()) return;
    for (ValueId gradient : found->second) {
      bucket_bytes_ += bytes_of(graph_, gradient);
      if (bucket_bytes_ >= kBucketBytes) sum_bucket();
    }
  }

  void sum_bucket() {
    const Collective collective =
        machine_.layout.zero == 1 ? Collective::kReduceScatter : Collective::kAllReduce;
    send({.collective = collective, .bytes = bucket_bytes_, .group = data_}, 0.0);
    bucket_bytes_ = 0;
  }

  void wait_for_messages() { kernels_done_ = std::max(kernels_done_, messages_done_); }

  const Graph& graph_;
  const MachineModel& machine_;
  std::vector<NodeId> order_;
  std::vector<double> kernels_;  // by NodeId
  std::vector<double> ready_;    // by ValueId: when the message that makes it is done
  Group data_;
  std::unordered_set<NodeId> optimizers_;
  std::unordered_set<ValueId> gradients_;
  std::unordered_map<NodeId, std::vector<ValueId>> gradients_of_;  // by producer
  std::int64_t updated_bytes_ = 0;  // of the parameters that are gathered after the update
  std::int64_t bucket_bytes_ = 0;
  Gradients gradients_now_ = Gradients::kLeft;
  double kernels_done_ = 0.0;
  double messages_done_ = 0.0;
  StepTime time_;
};

}  // namespace

std::vector<double> kernel_seconds(const Graph& graph, const MachineModel& machine) {
  std::vector<double> seconds = modelled_seconds(graph, machine.kernels);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    double& own = seconds[static_cast<std::size_t>(id)];
    if (is_message(node)) own = 0.0;
    if (machine.link && is_transfer(node))
      own = machine.link->seconds(bytes_of(graph, node.inputs[0]));
  }
  return seconds;
}

std::vector<double> message_seconds(const Graph& graph, const MachineModel& machine) {
  std::vector<double> seconds(graph.node_capacity(), 0.0);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!is_message(node)) continue;
    const Message message = message_of(graph, node, machine);
    seconds[static_cast<std::size_t>(id)] =
        collective_seconds(message.collective, message.bytes, message.group);
  }
  return seconds;
}

StepTime step_time(const Graph& graph, const MachineModel& machine, std::int64_t micro_batches) {
  Streams streams(graph, machine);
  for (std::int64_t i = 1; i < micro_batches; ++i) {
    streams.forward_and_backward(Streams::Gradients::kLeft);
  }
  streams.forward_and_backward(Streams::Gradients::kSummed);
  streams.update();
  return streams.time();
}

double forward_seconds(const Graph& graph, const MachineModel& machine) {
  Streams streams(graph, machine);
  streams.forward();
  return streams.time().seconds;
}

}  // namespace trainscope
