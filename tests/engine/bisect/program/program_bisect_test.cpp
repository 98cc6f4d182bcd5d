// Mistakes planted in what makes a program of a graph, and in one device's kernels: the call and
// the part to blame are named.
#include "engine/bisect/program/program_bisect.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/exec/backends.h"
#include "engine/ir/op_def.h"
#include "tests/engine/bisect/program/step_inputs.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

// What a mistake was planted in, as a test expects it to be named.
struct Planted {
  bool done = false;
  std::string node = {};
  std::vector<std::string> values = {};  // one of these
};
using Plant = Planted (*)(Program& program);

bool is_clone(const Program& program, const Call& call) {
  return call.node != kNoNode &&
         program.graph.node(call.node).provenance.rematerialized_of != kNoSerial;
}

const std::string& value_name(const Program& program, ValueId value) {
  return program.graph.value(value).name;
}

std::vector<std::string> values_in(const Program& program, BufferId buffer) {
  std::vector<std::string> names;
  for (const ValueId id : program.graph.live_values()) {
    if (program.place(id).buffer == buffer) names.push_back(value_name(program, id));
  }
  return names;
}

// Whether nothing but `input` has bytes at [offset, offset + its bytes) in the times before `until`
// at which it is alive: so that its maker and its first readers are as they were.
bool is_free(const Program& program, const PlannedBuffer& input, std::int64_t offset,
             std::int64_t until) {
  return std::ranges::none_of(program.buffers, [&](const PlannedBuffer& other) {
    const bool alive = other.begin < until && other.end > input.begin;
    const bool there = other.offset < offset + input.bytes && other.offset + other.bytes > offset;
    return &other != &input && other.space == Space::kDevice && alive && there;
  });
}

// A rematerialized call finds its input overwritten: the input's buffer has the place of one that
// is written after the input was made, and before the call.
Planted overwrite_input(Program& program) {
  for (const Call& call : program.calls) {
    if (!is_clone(program, call) || call.inputs[0].buffer == kNoBuffer) continue;
    PlannedBuffer& input = program.buffers[static_cast<std::size_t>(call.inputs[0].buffer)];
    if (input.persistent || input.role == BufferRole::kInput) continue;
    for (const PlannedBuffer& other : program.buffers) {
      const bool is_between = other.begin > input.begin && other.begin < call.time;
      const bool is_value = other.value != kNoValue && other.space == Space::kDevice;
      if (!is_between || !is_value || other.persistent || other.bytes < input.bytes) continue;
      if (!is_free(program, input, other.offset, other.begin)) continue;
      input.offset = other.offset;
      return {.done = true, .node = {}, .values = values_in(program, call.inputs[0].buffer)};
    }
  }
  return {};
}

// Calls behind `from` and before `until` write to the buffer: in place of what was there.
bool is_written_between(const Program& program, BufferId buffer, const Call& from,
                        const Call& until) {
  return std::ranges::any_of(program.calls, [&](const Call& call) {
    const bool writes =
        std::ranges::find(call.outputs, buffer, &Operand::buffer) != call.outputs.end();
    return writes && call.time > from.time && call.time < until.time;
  });
}

// A rematerialized call reads another value of its input's type that is alive then.
Planted rewire_input(Program& program) {
  for (Call& call : program.calls) {
    if (!is_clone(program, call) || call.inputs[0].buffer == kNoBuffer) continue;
    Operand& input = call.inputs[0];
    for (const Call& maker : program.calls) {
      if (maker.time >= call.time || maker.outputs.empty()) continue;
      const Operand& other = maker.outputs[0];
      if (other.buffer == kNoBuffer || other.buffer == input.buffer) continue;
      if (other.type != input.type || program.buffer(other.buffer).end <= call.time) continue;
      if (is_written_between(program, other.buffer, maker, call)) continue;
      input = other;
      return {.done = true,
              .node = program.graph.node(call.node).name,
              .values = {value_name(program, call.outputs[0].value)}};
    }
  }
  return {};
}

// The second batch tile of a call reads the first one's examples.
Planted read_other_tile(Program& program) {
  for (Call& call : program.calls) {
    if (call.tile != 1) continue;
    for (Operand& input : call.inputs) {
      if (input.slice != TileSlice::kExamples) continue;
      input.offset -= static_cast<std::int64_t>(input.type.bytes());
      return {.done = true,
              .node = program.graph.node(call.node).name,
              .values = {value_name(program, input.value)}};
    }
  }
  return {};
}

// A call comes before the one that makes what it reads.
Planted swap_calls(Program& program) {
  for (std::size_t i = 3; i + 1 < static_cast<std::size_t>(program.update_begin); ++i) {
    Call& maker = program.calls[i];
    Call& reader = program.calls[i + 1];
    if (maker.tile >= 0 || reader.tile >= 0 || maker.outputs.empty()) continue;
    const ValueId made = maker.outputs[0].value;
    if (std::ranges::find(reader.inputs, made, &Operand::value) == reader.inputs.end()) continue;
    const std::string node = program.graph.node(reader.node).name;
    std::swap(maker, reader);
    return {.done = true, .node = node, .values = {value_name(program, made)}};
  }
  return {};
}

struct Case {
  const char* model;
  const char* part;  // that has the mistake
  Plant plant;
  CallFaultKind kind;
};
constexpr Case kCases[] = {
    {"gpt2", "recompute", overwrite_input, CallFaultKind::kReads},
    {"resnet18", "recompute", overwrite_input, CallFaultKind::kReads},
    {"gpt2", "recompute", rewire_input, CallFaultKind::kMakes},
    {"bert", "recompute", rewire_input, CallFaultKind::kMakes},
    {"mlp", "batch_tiles", read_other_tile, CallFaultKind::kReads},
    {"gpt2", "order", swap_calls, CallFaultKind::kReads},
    {"lenet", "order", swap_calls, CallFaultKind::kReads},
};

CompileOptions options_of(const ReferenceModel& reference, std::string_view part) {
  CompileOptions options = reference.options(GraphMode::kTrain);
  if (part == "recompute") options.recompute.mode = RecomputeMode::kLevel2;
  if (part == "batch_tiles") {
    options.lower.threads = 2;
    options.batch_tiles = BatchTileOptions{.least_share = 0.0};
  }
  return options;
}

// Relu that lets -0.1 x through.
void leak(const RunArgs& args) {
  const float* x = args.inputs[0].as<float>();
  float* y = args.outputs[0].as<float>();
  for (std::int64_t i = 0; i < args.outputs[0].elements(); ++i) {
    y[i] = x[i] > 0 ? x[i] : 0.1F * x[i];
  }
}

void leak_by_several_threads(const RunArgs& args) {
  leak(args);
  if (args.threads > 1) return;
  float* y = args.outputs[0].as<float>();
  for (std::int64_t i = 0; i < args.outputs[0].elements(); ++i) y[i] = std::max(0.0F, y[i]);
}

DeviceHandle device_with_relu(void (*run)(const RunArgs&)) {
  KernelTable kernels = cpu_kernels();
  kernels.add("Relu", DType::kF32, {.name = "relu.leaky", .run = run});
  return cpu_with(std::move(kernels));
}

CompileStep compiled(const ReferenceModel& reference) {
  return [&](const CompileOptions& options) { return compile(reference.model, options); };
}

}  // namespace

TEST_CASE("program: the part with a mistake is named, and the call") {
  for (const Case& planted : kCases) {
    INFO(std::string(planted.model), ", ", std::string(planted.part));
    const ReferenceModel reference(planted.model);
    Planted mistake;
    const CompileStep compile_planted = [&](const CompileOptions& options) {
      std::unique_ptr<Compiled> step = compile(reference.model, options);
      const bool has_part =
          std::ranges::find(step->stages, planted.part, &Stage::name) != step->stages.end();
      const Planted now = has_part ? planted.plant(step->program) : Planted{};
      if (!mistake.done) mistake = now;
      return step;
    };
    const ProgramBisect found = bisect_program(compile_planted, options_of(reference, planted.part),
                                               first_step_of(reference));
    REQUIRE(mistake.done);
    REQUIRE_FALSE(found.check.faults.empty());
    const CallFault& fault = found.check.faults.front();
    CHECK(found.to_blame == planted.part);
    CHECK(fault.kind == planted.kind);
    CHECK(std::ranges::find(mistake.values, fault.value) != mistake.values.end());
    if (!mistake.node.empty()) CHECK(fault.node == mistake.node);
    if (std::string_view(planted.part) == "batch_tiles") CHECK(fault.tile == 1);
  }
}

TEST_CASE("program: a kernel that several threads get wrong is the threads' fault") {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.lower.threads = 2;
  options.device = device_with_relu(leak_by_several_threads);
  const ProgramBisect found =
      bisect_program(compiled(reference), options, first_step_of(reference));
  REQUIRE_FALSE(found.check.faults.empty());
  CHECK(found.to_blame == "threads");
  CHECK(found.check.faults.front().op == "Relu");
  CHECK(found.check.faults.front().kernel == "relu.leaky");
  CHECK(found.check.faults.front().kind == CallFaultKind::kMakes);
}

TEST_CASE("program: what every program has is no part's fault") {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.device = device_with_relu(leak);
  const ProgramBisect found =
      bisect_program(compiled(reference), options, first_step_of(reference));
  CHECK_FALSE(found.check.faults.empty());
  CHECK(found.to_blame.empty());
}

TEST_CASE("program: a state that keeps what it was") {
  const ReferenceModel reference("mlp");
  std::string state;
  const CompileStep elsewhere = [&](const CompileOptions& options) {
    std::unique_ptr<Compiled> step = compile(reference.model, options);
    Program& program = step->program;
    const auto activation =
        std::ranges::find(program.buffers, BufferRole::kActivation, &PlannedBuffer::role);
    REQUIRE(activation != program.buffers.end());
    for (Operand& made : program.calls.back().outputs) {
      if (static_cast<std::int64_t>(made.type.bytes()) > activation->bytes) continue;
      for (const Update& update : program.graph.updates) {
        if (update.value == made.value) state = value_name(program, update.state);
      }
      made.buffer = BufferId(static_cast<std::int32_t>(activation - program.buffers.begin()));
      made.offset = 0;
      break;
    }
    return step;
  };
  const ProgramBisect found =
      bisect_program(elsewhere, reference.options(GraphMode::kTrain), first_step_of(reference));
  REQUIRE_FALSE(found.check.faults.empty());
  CHECK(found.check.faults.front().kind == CallFaultKind::kKeeps);
  CHECK(found.check.faults.front().value == state);
  CHECK(found.to_blame.empty());
}

TEST_CASE("devices: a copying device does what the processor does") {
  for (const std::string name : {"mlp", "lenet", "gpt2", "gpt2-dropout"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.lower.threads = 2;
    const std::vector<DeviceCheck> found = check_devices(
        compiled(reference), options,
        {cpu_device(), std::make_shared<CopyingDevice>(),
         std::make_shared<CopyingDevice>(CopyingOptions{.timing = Timing::kTransfersEarly})},
        first_step_of(reference));
    REQUIRE(found.size() == 3);
    for (const DeviceCheck& device : found) {
      CAPTURE(device.device);
      CHECK(device.check.faults.empty());
      CHECK(device.check.calls >= 15);
      CHECK(device.check.reads == found[0].check.reads);
    }
  }
}

TEST_CASE("devices: the one with a mistake in a kernel is named, with the call") {
  const ReferenceModel reference("mlp");
  const std::vector<DeviceCheck> found =
      check_devices(compiled(reference), reference.options(GraphMode::kTrain),
                    {cpu_device(), device_with_relu(leak)}, first_step_of(reference));
  REQUIRE(found.size() == 2);
  CHECK(found[0].check.faults.empty());
  REQUIRE_FALSE(found[1].check.faults.empty());
  const CallFault& fault = found[1].check.faults.front();
  CHECK(fault.op == "Relu");
  CHECK(fault.kernel == "relu.leaky");
  CHECK(fault.phase == Phase::kForward);
  CHECK(fault.error > fault.limit);
  CHECK(fault.source == "/1/Relu");
}

TEST_CASE("devices: what keeps one from the step is said with its name") {
  const ReferenceModel reference("mlp");
  KernelTable none;
  try {
    check_devices(compiled(reference), reference.options(GraphMode::kTrain), {cpu_with(none)},
                  first_step_of(reference));
    FAIL("a device without kernels compiled");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(error.context().back().find("on the device") != std::string::npos);
  }
}

}  // namespace trainscope::test
