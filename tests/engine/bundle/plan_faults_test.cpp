// Every way in which a row can be wrong has a message that says which.
#include <doctest/doctest.h>

#include <functional>

#include "engine/bundle/plan_record.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {

TEST_CASE("plan faults: a sound plan has none") {
  CHECK(find_fault(view_of(chain_plan(4))).empty());
  CHECK(find_fault(view_of(PlanRecord())).empty());
}

TEST_CASE("plan faults: places up to the end of what they are in are sound") {
  PlanRecord plan = chain_plan(4);
  plan.operands[0].offset = 64;
  plan.sections = {{.begin = 0, .end = 2, .tiles = 2}, {.begin = 2, .end = 4, .tiles = 2}};
  plan.waits = {0};
  plan.calls[1].waits.count = 1;
  plan.calls[1].workspace = 2;
  plan.calls[1].workspace_offset = 64;
  plan.calls[1].section = 0;
  plan.calls[1].tile = 1;
  CHECK(find_fault(view_of(plan)).empty());
  plan.buffers[plan.operands[0].buffer].external = 1;  // the other program knows how large it is
  plan.operands[0].offset = 65;
  CHECK(find_fault(view_of(plan)).empty());
}

TEST_CASE("plan faults: each row is named") {
  struct Row {
    std::function<void(PlanRecord&)> change;
    const char* message;
  };
  const Row rows[] = {
      {[](PlanRecord& p) { p.facts.workspace_bytes = -1; }, "a size is negative"},
      {[](PlanRecord& p) { p.spaces[0].bytes = -1; }, "a size is negative"},
      {[](PlanRecord& p) { p.spaces[1].lower_bound_bytes = -1; }, "a size is negative"},
      {[](PlanRecord& p) { p.spaces.pop_back(); },
       "the memory spaces are not the device's and the host's"},
      {[](PlanRecord& p) { p.spaces[1].kind = PlanSpaceKind::kDevice; },
       "the memory spaces are not the device's and the host's"},
      {[](PlanRecord& p) { p.spaces[0].proven = 2; }, "the proof is neither there nor not"},
      {[](PlanRecord& p) { p.spaces[1].name = 99; }, "there is no such text"},
      {[](PlanRecord& p) { p.spaces[0].alignment_bytes = 0; }, "the alignment is not above zero"},
      {[](PlanRecord& p) { p.facts.times = 5; }, "there are more times than calls"},
      {[](PlanRecord& p) { p.facts.update_begin = 5; }, "the update begins after the end"},
      {[](PlanRecord& p) { p.facts.update_call = 5; }, "the update begins after the end"},
      {[](PlanRecord& p) { p.facts.device = 99; }, "there is no such text"},
      {[](PlanRecord& p) { p.recompute.resize(2); }, "there are several rows of recomputation"},
      {[](PlanRecord& p) { p.dims[0] = -2; }, "a dimension is negative"},
      {[](PlanRecord& p) { p.members[1] = 9; }, "a buffer holds a value that is not there"},
      {[](PlanRecord& p) { p.waits = {4}; }, "a call waits for one that is not there"},
      {[](PlanRecord& p) { p.names[0] = 99; }, "there is no such text"},
      {[](PlanRecord& p) { p.other_kernels[0].reason = 99; }, "there is no such text"},
      {[](PlanRecord& p) { p.sections = {{.begin = 2, .end = 9}}; },
       "a tiled section is outside of the calls"},
      {[](PlanRecord& p) {
         p.sections = {{.begin = 2, .end = 4, .tiles = 2}, {.begin = 0, .end = 2, .tiles = 2}};
       },
       "a tiled section begins before the end of the one before"},
      {[](PlanRecord& p) {
         p.sections = {{.begin = 0, .end = 3, .tiles = 2}, {.begin = 2, .end = 4, .tiles = 2}};
       },
       "a tiled section begins before the end of the one before"},
      {[](PlanRecord& p) { p.values[2].buffer = 9; }, "value 2: its buffer is not there"},
      {[](PlanRecord& p) { p.values[2].offset = 64; }, "value 2: it is not inside its buffer"},
      {[](PlanRecord& p) { p.values[2].bytes = 65; }, "value 2: it is not inside its buffer"},
      {[](PlanRecord& p) { p.values[2].shape.count = 99; }, "value 2: its shape is not there"},
      {[](PlanRecord& p) { p.values[2].kind = PlanValueKind{6}; }, "value 2: its kind is unknown"},
      {[](PlanRecord& p) { p.values[2].view_of = 9; },
       "value 2: what it is a view of is not there"},
      {[](PlanRecord& p) { p.nodes[2].op_class = OpClass{11}; },
       "node 2: the class of its op is unknown"},
      {[](PlanRecord& p) { p.nodes[2].rematerialized_of = 4; },
       "node 2: the node that computes the same first is not there"},
      {[](PlanRecord& p) { p.inputs = {9}; }, "an input or output is not there"},
      {[](PlanRecord& p) { p.outputs = {9}; }, "an input or output is not there"},
      {[](PlanRecord& p) { p.buffers[1].owner = 9; }, "buffer 1: its owner is not there"},
      {[](PlanRecord& p) { p.buffers[1].offset = 129; }, "buffer 1: it is not inside the arena"},
      {[](PlanRecord& p) { p.buffers[1].bytes = 129; }, "buffer 1: it is not inside the arena"},
      {[](PlanRecord& p) { p.buffers[1].offset = -64; }, "buffer 1: it is not inside the arena"},
      {[](PlanRecord& p) { p.buffers[1].space = PlanSpaceKind::kHost; },
       "buffer 1: it is not inside the arena"},
      {[](PlanRecord& p) { p.buffers[1].external = 2; },
       "buffer 1: it is neither external nor not"},
      {[](PlanRecord& p) { p.buffers[1].begin = 9; }, "buffer 1: it ends before it begins"},
      {[](PlanRecord& p) { p.buffers[1].holds = BufferClass{9}; },
       "buffer 1: its class is unknown"},
      {[](PlanRecord& p) { p.nodes[3].op = 99; }, "node 3: there is no such text"},
      {[](PlanRecord& p) { p.nodes[3].sources.begin = 4; }, "node 3: its sources are not there"},
      {[](PlanRecord& p) { p.operands[0].value = 9; }, "operand 0: its value is not there"},
      {[](PlanRecord& p) { p.operands[0].offset = -1; }, "operand 0: its offset is negative"},
      {[](PlanRecord& p) { p.operands[0].offset = 65; },
       "operand 0: it begins behind the end of its buffer"},
      {[](PlanRecord& p) { p.operands[0].dtype = 99; }, "operand 0: there is no such text"},
      {[](PlanRecord& p) { p.operands[0].shape.count = 99; }, "operand 0: its shape is not there"},
      {[](PlanRecord& p) { p.calls[1].kind = PlanCallKind{5}; }, "call 1: its kind is unknown"},
      {[](PlanRecord& p) { p.calls[1].node = 4; }, "call 1: its node is not there"},
      {[](PlanRecord& p) { p.calls[1].inputs.count = 8; }, "call 1: its inputs are not there"},
      {[](PlanRecord& p) { p.calls[1].workspace = 5; }, "call 1: its workspace is not there"},
      {[](PlanRecord& p) { p.calls[1].section = 0; }, "call 1: its tiled section is not there"},
      {[](PlanRecord& p) { p.calls[1].time = 4; }, "call 1: its time is after the end"},
      {[](PlanRecord& p) { p.calls[1].workspace_offset = -1; },
       "call 1: its workspace begins before the buffer"},
      {[](PlanRecord& p) { p.calls[1].flops = -1; }, "call 1: it costs less than nothing"},
      {[](PlanRecord& p) { p.calls[1].kernel_flops = -2; },
       "call 1: its kernel costs less than nothing"},
      {[](PlanRecord& p) { p.calls[1].body = 0; }, "call 1: its body is not there"},
      {[](PlanRecord& p) { p.calls[1].behind = 3; },
       "call 1: more kernels are behind its own than others"},
      {[](PlanRecord& p) {
         p.calls[1].workspace = 2;
         p.calls[1].workspace_offset = 65;
       },
       "call 1: it is not inside its workspace"},
      {[](PlanRecord& p) {
         p.calls[1].workspace = 2;
         p.calls[1].workspace_offset = 32;
         p.calls[1].workspace_bytes = 33;
       },
       "call 1: it is not inside its workspace"},
      {[](PlanRecord& p) { p.calls[1].tile = 0; }, "call 1: its section has no such batch tile"},
      {[](PlanRecord& p) {
         p.sections = {{.begin = 0, .end = 4, .tiles = 2}};
         p.calls[1].section = 0;
         p.calls[1].tile = 2;
       },
       "call 1: its section has no such batch tile"},
      {[](PlanRecord& p) {
         p.waits = {1};
         p.calls[1].waits.count = 1;
       },
       "call 1: it waits for a call that is not before it"},
      {[](PlanRecord& p) {
         p.waits = {0, 3};
         p.calls[2].waits.count = 2;
       },
       "call 2: it waits for a call that is not before it"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    PlanRecord plan = chain_plan(4);
    row.change(plan);
    CHECK(find_fault(view_of(plan)) == row.message);
  }
}

TEST_CASE("plan faults: of bodies, and of the calls that run them") {
  struct Row {
    std::function<void(PlanRecord&)> change;
    const char* message;
  };
  const Row rows[] = {
      {[](PlanRecord& p) { p.body_plans.clear(); }, "a body is not there"},
      {[](PlanRecord& p) { p.bodies[0].carried.count = 2; }, "what a body carries is not there"},
      {[](PlanRecord& p) { p.carried[0].from = 1; }, "what a body carries is not there"},
      {[](PlanRecord& p) { p.carried[0].to = 1; }, "what a body carries is not there"},
      {[](PlanRecord& p) { p.bodies[0].trips_input = 1; }, "a body's number of trips is not there"},
      {[](PlanRecord& p) { p.body_plans[0].calls[1].time = 9; },
       "body 0: call 1: its time is after the end"},
      {[](PlanRecord& p) { p.calls.back().kind = PlanCallKind::kKernel; },
       "call 3: it has a body and runs none"},
      {[](PlanRecord& p) {
         p.body_plans[0].inputs = {0, 0};
       },
       "call 3: its body has other inputs or outputs"},
      {[](PlanRecord& p) { p.body_plans[0].spaces[0].bytes = 193; },
       "call 3: its body needs more than its workspace"},
  };
  CHECK(find_fault(view_of(plan_with_body(4, chain_plan(2)))).empty());
  for (const Row& row : rows) {
    CAPTURE(row.message);
    PlanRecord plan = plan_with_body(4, chain_plan(2));
    row.change(plan);
    CHECK(find_fault(view_of(plan)) == row.message);
  }
}

}  // namespace trainscope
