// Records of small and large plans.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engine/bundle/plan_record.h"

namespace trainscope {

// Adds a node with one kernel that reads `input` and makes a value in a buffer of its own: 64 bytes
// at `offset`, alive from its call to the next one's end. Returns the value.
inline std::uint32_t add_kernel(PlanRecord& plan, const std::string& name, std::uint32_t input,
                                std::int64_t offset) {
  const auto call = static_cast<std::uint32_t>(plan.calls.size());
  const auto value = static_cast<std::uint32_t>(plan.values.size());
  const auto buffer = static_cast<std::uint32_t>(plan.buffers.size());
  const auto row = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
  plan.names.push_back(plan.texts.id("/" + name));
  plan.nodes.push_back({.name = plan.texts.id(name),
                        .op = plan.texts.id("Relu"),
                        .pass = plan.texts.id("import"),
                        .sources = {.begin = row(plan.names) - 1, .count = 1}});
  plan.dims.insert(plan.dims.end(), {2, 8});
  plan.values.push_back({.name = plan.texts.id(name + ":0"),
                         .dtype = plan.texts.id("f32"),
                         .shape = {.begin = row(plan.dims) - 2, .count = 2},
                         .buffer = buffer,
                         .producer = row(plan.nodes) - 1,
                         .kind = PlanValueKind::kNode,
                         .bytes = 64});
  plan.members.push_back(value);
  plan.buffers.push_back({.owner_kind = BufferOwner::kValue,
                          .owner = value,
                          .label = plan.texts.id(name + ":0"),
                          .producer = plan.texts.id(name),
                          .values = {.begin = row(plan.members) - 1, .count = 1},
                          .begin = call,
                          .end = call + 2,
                          .offset = offset,
                          .bytes = 64});
  for (const std::uint32_t v : {input, value}) {
    plan.operands.push_back({.value = v,
                             .buffer = plan.values[v].buffer,
                             .dtype = plan.values[v].dtype,
                             .shape = plan.values[v].shape});
  }
  plan.other_kernels.push_back(
      {.kernel = plan.texts.id("relu.wide"), .reason = plan.texts.id("it refused this case")});
  plan.other_kernels.push_back(
      {.kernel = plan.texts.id("relu.plain"), .reason = plan.texts.id("later in the list")});
  plan.calls.push_back({.node = row(plan.nodes) - 1,
                        .kernel = plan.texts.id("relu"),
                        .dtype = plan.texts.id("f32"),
                        .inputs = {.begin = row(plan.operands) - 2, .count = 1},
                        .outputs = {.begin = row(plan.operands) - 1, .count = 1},
                        .other_kernels = {.begin = row(plan.other_kernels) - 2, .count = 2},
                        .time = call,
                        .flops = 16,
                        .bytes_read = 64,
                        .bytes_written = 64,
                        .kernel_flops = 17,
                        .kernel_bytes_read = 64,
                        .kernel_bytes_written = 65,
                        .behind = 1});
  plan.facts.times = call + 1;
  plan.facts.update_begin = call + 1;
  return value;
}

// A chain of kernels on an input of 64 bytes.
inline PlanRecord chain_plan(int calls) {
  PlanRecord plan;
  plan.facts = {.threads = 2, .device = plan.texts.id("cpu")};
  plan.spaces[0] = {.bytes = 192,
                    .lower_bound_bytes = 192,
                    .alignment_bytes = 64,
                    .name = plan.texts.id("memory"),
                    .method = plan.texts.id("event_order"),
                    .proven = 1};
  plan.dims = {2, 8};
  plan.values.push_back({.name = plan.texts.id("x"),
                         .dtype = plan.texts.id("f32"),
                         .shape = {.begin = 0, .count = 2},
                         .buffer = 0,
                         .kind = PlanValueKind::kInput,
                         .bytes = 64});
  plan.members.push_back(0);
  plan.buffers.push_back({.holds = BufferClass::kInput,
                          .owner_kind = BufferOwner::kValue,
                          .owner = 0,
                          .label = plan.texts.id("x"),
                          .producer = plan.texts.id("input"),
                          .values = {.begin = 0, .count = 1},
                          .end = static_cast<std::uint32_t>(calls),
                          .bytes = 64});
  plan.inputs = {0};
  std::uint32_t value = 0;
  for (int i = 0; i < calls; ++i) {
    value = add_kernel(plan, "relu_" + std::to_string(i), value, 64 + 64 * (i % 2));
  }
  plan.outputs = {value};
  return plan;
}

// ... whose last call runs a body: another chain, in a workspace behind the others.
inline PlanRecord plan_with_body(int calls, PlanRecord body) {
  PlanRecord plan = chain_plan(calls);
  const std::int64_t bytes = body.spaces[0].bytes;
  plan.spaces[0].bytes += bytes;
  plan.buffers.push_back({.holds = BufferClass::kWorkspace,
                          .owner_kind = BufferOwner::kCall,
                          .owner = static_cast<std::uint32_t>(calls - 1),
                          .end = static_cast<std::uint32_t>(calls),
                          .offset = 192,
                          .bytes = bytes});
  plan.carried = {{.from = 0, .to = 0}};
  plan.bodies = {{.carried = {.begin = 0, .count = 1}, .trips_input = 0}};
  plan.body_plans.push_back(std::move(body));
  PlanCall& call = plan.calls.back();
  call.kind = PlanCallKind::kProgram;
  call.workspace = static_cast<std::uint32_t>(plan.buffers.size() - 1);
  call.workspace_bytes = bytes;
  call.body = 0;
  return plan;
}

}  // namespace trainscope
