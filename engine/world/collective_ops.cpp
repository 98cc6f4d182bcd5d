// Shapes and costs of the ops that divide a step among devices.
#include "engine/world/collective_ops.h"

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"
#include "engine/ops/standard_ops.h"

namespace trainscope {
namespace {

// Their time is that of messages, which the timeline knows.
Cost no_work(const OpArgs&) { return {}; }

std::int64_t shards_of(const OpArgs& args) { return args.attributes.integer("devices", 1); }

Shape shape_attribute(const OpArgs& args) {
  const Ints dims = args.attributes.integers("shape");
  return Shape(std::span<const std::int64_t>(dims));
}

Types gathered(const OpArgs& args) {
  const Shape shape = shape_attribute(args);
  CHECK_INVARIANT(args.type(0).elements() == shard_elements(shape.elements(), shards_of(args)));
  return {{.dtype = args.type(0).dtype, .shape = shape}};
}

Types scattered(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype,
           .shape = {shard_elements(args.type(0).elements(), shards_of(args))}}};
}

struct StepGroups {
  int parameters = 0;
  int states = 0;  // of each parameter
};
StepGroups groups_of(const OpArgs& args) {
  return {.parameters = static_cast<int>(args.attributes.integer("parameters", 0)),
          .states = static_cast<int>(args.attributes.integer("states", 0))};
}

Types stepped(const OpArgs& args) {
  const StepGroups groups = groups_of(args);
  Types types;
  for (int i = 0; i < groups.parameters; ++i) types.push_back(args.type(i));
  for (int i = 0; i < groups.states * groups.parameters; ++i) {
    types.push_back(args.type(2 * groups.parameters + i));
  }
  return types;
}

std::vector<InPlace> step_in_place(const OpArgs& args) {
  const StepGroups groups = groups_of(args);
  std::vector<InPlace> pairs;
  for (int i = 0; i < (1 + groups.states) * groups.parameters; ++i) {
    pairs.push_back({.output = i, .input = i < groups.parameters ? i : i + groups.parameters});
  }
  return pairs;
}

// A shard of parameter, gradient and each state is read, and all but the gradient written.
Cost step_cost(const OpArgs& args) {
  const std::int64_t bytes = args.attributes.integer("shard_bytes", 0);
  const std::int64_t states = groups_of(args).states;
  return {.flops = args.attributes.integer("flops", 0),
          .bytes_read = saturating_multiply(bytes, 2 + states),
          .bytes_written = saturating_multiply(bytes, 1 + states)};
}

OpDef receive_row() {
  return {.name = "Receive",
          .domain = kTrainscopeDomain,
          .min_inputs = 0,
          .max_inputs = 0,
          .shape = [](const OpArgs& args) -> Types {
            return {{.dtype = static_cast<DType>(args.attributes.integer("dtype", 0)),
                     .shape = shape_attribute(args)}};
          },
          .cost = no_work,
          .traits = kWholeValuesOnce};
}

}  // namespace

const OpDef& all_gather_op() {
  static const OpDef row = {.name = "AllGather",
                            .domain = kTrainscopeDomain,
                            .shape = gathered,
                            .cost = no_work,
                            .traits = kWholeValuesOnce};
  return row;
}

const OpDef& reduce_scatter_op() {
  static const OpDef row = {.name = "ReduceScatter",
                            .domain = kTrainscopeDomain,
                            .shape = scattered,
                            .cost = no_work,
                            .traits = kWholeValuesOnce};
  return row;
}

const OpDef& all_reduce_op() {
  static const OpDef& row = shared_ops().get("AllReduce");
  return row;
}

const OpDef& sharded_step_op() {
  static const OpDef row = {.name = "ShardedStep",
                            .domain = kTrainscopeDomain,
                            .max_inputs = kVariadic,
                            .max_outputs = kVariadic,
                            .shape = stepped,
                            .cost = step_cost,
                            .in_place = step_in_place,
                            .traits = kWholeValuesOnce};
  return row;
}

const OpDef& receive_op() {
  static const OpDef row = receive_row();
  return row;
}

}  // namespace trainscope
