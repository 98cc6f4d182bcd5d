// Records of small and large plans.
#pragma once

#include <cstdint>
#include <string>

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
  plan.operands.push_back({.value = input, .buffer = plan.values[input].buffer});
  plan.operands.push_back({.value = value, .buffer = buffer});
  plan.refusals.push_back(
      {.kernel = plan.texts.id("relu.wide"), .reason = plan.texts.id("it refused this case")});
  plan.calls.push_back({.node = row(plan.nodes) - 1,
                        .kernel = plan.texts.id("relu"),
                        .dtype = plan.texts.id("f32"),
                        .inputs = {.begin = row(plan.operands) - 2, .count = 1},
                        .outputs = {.begin = row(plan.operands) - 1, .count = 1},
                        .refused = {.begin = row(plan.refusals) - 1, .count = 1},
                        .time = call,
                        .flops = 16,
                        .bytes_read = 64,
                        .bytes_written = 64});
  plan.facts.times = call + 1;
  plan.facts.update_begin = call + 1;
  return value;
}

// A chain of kernels on an input of 64 bytes.
inline PlanRecord chain_plan(int calls) {
  PlanRecord plan;
  plan.facts = {.arena_bytes = 192,
                .lower_bound_bytes = 192,
                .alignment_bytes = 64,
                .threads = 2,
                .proven = 1,
                .method = plan.texts.id("event_order")};
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
  std::uint32_t value = 0;
  for (int i = 0; i < calls; ++i) {
    value = add_kernel(plan, "relu_" + std::to_string(i), value, 64 + 64 * (i % 2));
  }
  return plan;
}

}  // namespace trainscope
