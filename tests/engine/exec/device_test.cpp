// Devices: the CPU's work, failures as errors, and that nothing of the engine touches a device's
// memory but through the device.
#include "kernels/api/device.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/ir/builder.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kBytes = 16;

// y = x + 1 for 4 floats, as a kernel.
void add_one(const RunArgs& args) {
  const auto* x = args.inputs[0].as<const float>();
  for (int i = 0; i < 4; ++i) args.outputs[0].as<float>()[i] = x[i] + 1;
}
constexpr Kernel kAddOne{.name = "add_one", .run = add_one};

// The device's memory with 4 floats, and the arguments that add one to each in place.
struct Block {
  explicit Block(Device& on) : device(on) {
    REQUIRE(device.allocate(Space::kDevice, kBytes, &memory).done());
    view = {.type = {.dtype = DType::kF32, .shape = {4}}, .data = memory};
  }
  ~Block() { device.release(Space::kDevice, memory, kBytes); }
  RunArgs args() const { return {.params = params, .inputs = {&view, 1}, .outputs = {&view, 1}}; }
  std::array<float, 4> read() const {
    std::array<float, 4> values{};
    CHECK(device.copy(kComputeStream, reinterpret_cast<std::byte*>(values.data()), memory, kBytes)
              .done());
    CHECK(device.synchronize(device.record(kComputeStream)).done());
    return values;
  }

  Device& device;
  std::byte* memory = nullptr;
  TensorView view;
  Params params = NoParams{};
};

std::vector<DeviceHandle> devices() {
  return {cpu_device(), std::make_shared<CopyingDevice>(),
          std::make_shared<CopyingDevice>(CopyingOptions{.timing = Timing::kTransfersEarly})};
}

using Four = std::array<float, 4>;

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::equal(a.data(), a.data() + a.bytes(), b.data());
}

// Fails at every launch.
Kernel failing_kernel() {
  return {.name = "exp.failing",
          .run = [](const RunArgs& run) { run.call.fail(DeviceStatus::Code::kFailed, "no"); }};
}

}  // namespace

TEST_CASE("device: memory begins as zeros, fills and kernels are done in order") {
  for (const DeviceHandle& device : devices()) {
    CAPTURE(std::string(device->facts().name));
    const Block block(*device);
    CHECK(block.read() == Four{0, 0, 0, 0});
    CHECK(device->launch(kComputeStream, kAddOne, block.args()).done());
    CHECK(device->launch(kComputeStream, kAddOne, block.args()).done());
    CHECK(block.read() == Four{2, 2, 2, 2});
    CHECK(device->fill(kComputeStream, block.memory + 4, std::byte{0}, 8).done());
    CHECK(block.read() == Four{2, 0, 0, 2});
  }
}

TEST_CASE("device: captured work is done when it is replayed, each time, after what came before") {
  for (const DeviceHandle& device : devices()) {
    CAPTURE(std::string(device->facts().name));
    const Block block(*device);
    std::unique_ptr<CapturedWork> work;
    REQUIRE(device->begin_capture().done());
    CHECK(device->launch(kComputeStream, kAddOne, block.args()).done());
    CHECK(device->wait(kTransferStream, device->record(kComputeStream)).done());
    CHECK(device->copy(kTransferStream, block.memory + 8, block.memory, 8).done());
    CHECK(device->wait(kComputeStream, device->record(kTransferStream)).done());
    CHECK(device->launch(kComputeStream, kAddOne, block.args()).done());
    REQUIRE(device->end_capture(&work).done());
    CHECK(block.read() == Four{0, 0, 0, 0});
    CHECK(device->fill(kComputeStream, block.memory, std::byte{0}, 8).done());
    for (int round = 1; round <= 3; ++round) {
      REQUIRE(device->replay(*work).done());
      const float now = 2.0F * static_cast<float>(round);
      CHECK(block.read() == Four{now, now, now, now});
    }
  }
}

TEST_CASE("device: a kernel's time is measured") {
  for (const DeviceHandle& device : devices()) {
    const Block block(*device);
    double seconds = -1.0;
    CHECK(device->time(kAddOne, block.args(), &seconds).done());
    CHECK(seconds >= 0.0);
    CHECK(seconds < 1.0);
  }
}

TEST_CASE("copying device: its addresses cannot be read by the host") {
  CopyingDevice device;
  const Block block(device);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    alarm(10);
    _exit(static_cast<volatile std::byte&>(*block.memory) == std::byte{0} ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
#ifdef __SANITIZE_ADDRESS__
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) != 0));
#else
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
#endif
}

TEST_CASE("device: offsets in an arena are multiples of its alignment") {
  const auto device = std::make_shared<CopyingDevice>(CopyingOptions{.alignment_bytes = 256});
  const Program program = lower(
      graph("(float[5] x) => (float[5] y, float[5] z) { y = Exp(x)  z = Sin(x) }"), device, {});
  CHECK(program.arena().alignment_bytes == 256);
  CHECK(program.arena().bytes == 3 * 256);
  for (const PlannedBuffer& buffer : program.buffers) CHECK(buffer.offset % 256 == 0);
}

TEST_CASE("executor: every function that copies from or to the host waits for the copy") {
  const auto device = std::make_shared<CopyingDevice>();
  const Program program = lower(
      graph("(float[2] x) => (float[2] y) <float[2] w = {10, 100}> { y = Mul(x, w) }"), device, {});
  Executor executor(program);
  executor.load_initial();
  CHECK(device->pending_host_copies() == 0);
  executor.write("x", floats({2}, {1, 2}));
  CHECK(device->pending_host_copies() == 0);
  executor.run_micro_step();
  CHECK(device->launches() == 0);  // nobody has waited yet
  const Tensor y = executor.read("y");
  CHECK(device->pending_host_copies() == 0);
  CHECK(device->launches() == 1);
  CHECK(y.values<float>()[1] == 200.0F);
  CHECK(executor.memory().read_scalar("y") == 10.0);
  executor.memory().write_scalar(executor.memory().kept("x"), 3.0);
  CHECK(device->pending_host_copies() == 0);
  executor.run_micro_step();
  CHECK(executor.memory().read_scalar("y") == 30.0);
}

TEST_CASE("device: every op's examples give on a device what they give node by node") {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels());
  int compared = 0;
  for (const OpDef* row : op_table().rows()) {
    if (row->is_view || cpu_kernels().find(row->name, DType::kF32).empty()) continue;
    for (const std::string_view text : row->examples) {
      const Example example = parse_example(text);
      INFO(row->name, " \"", text, "\"");
      Graph one;
      Builder b(one, op_table());
      b.set_provenance({.sources = {}, .pass = "test"});
      std::vector<ValueId> inputs;
      Tensors given;
      for (std::size_t i = 0; i < example.inputs.size(); ++i) {
        inputs.push_back(kNoValue);
        if (!example.inputs[i].present) continue;
        const Tensor tensor = make_input(example, i, DType::kF32, 17);
        const std::string name = "x" + std::to_string(i);
        const bool known = example.inputs[i].fill == Fill::kGiven;
        inputs.back() = known ? b.constant(tensor, name) : b.input(name, tensor.type());
        if (!known) given.emplace(name, tensor);
      }
      const std::vector<ValueId> results =
          b.multi(row->name, inputs, example.output_count, example.attributes);
      if (one.node(one.value(results[0]).producer).op != row) continue;  // simplified
      one.outputs = results;
      const Program program = lower(one, std::make_shared<CopyingDevice>(), {});
      Executor executor(program);
      executor.load_initial();
      for (const auto& [name, tensor] : given) {
        if (executor.has(name)) executor.write(name, tensor);
      }
      executor.run_micro_step();
      const ReferenceValues want = reference_run(one, given, evaluate);
      for (ValueId v : results) {
        if (v == kNoValue) continue;
        const std::string& name = one.value(v).name;
        CHECK(same_bits(executor.read(name), want.at(name)));
        ++compared;
      }
    }
  }
  MESSAGE(compared << " results compared");
  CHECK(compared > 300);
}

TEST_CASE("device: what a kernel reports on another device names kernel and case") {
  KernelTable table;
  table.add("Exp", DType::kF32, failing_kernel());
  const Program program =
      lower(graph("(float[2] x) => (float[2] y) { y = Exp(x) }"), cpu_with(std::move(table)), {});
  Executor executor(program);
  executor.write("x", floats({2}, {1, 2}));
  const std::string refusal = refusal_of([&] { executor.run_micro_step(); });
  CHECK(contains(refusal, "the kernel exp.failing could not compute this: no"));
  CHECK(contains(refusal, "node 'Exp_0' (Exp)"));
}

TEST_CASE("device: what is done late says that it failed to whoever waits for it, once") {
  const Kernel failing = failing_kernel();
  CopyingDevice device;
  const Block block(device);
  CHECK(device.launch(kComputeStream, failing, block.args()).done());
  CHECK(device.launch(kComputeStream, kAddOne, block.args()).done());
  const DeviceStatus status = device.synchronize(device.record(kComputeStream));
  CHECK(status.code == DeviceStatus::Code::kFailed);
  CHECK(status.message == "no");
  CHECK(block.read() == Four{1, 1, 1, 1});
}

}  // namespace trainscope::test
