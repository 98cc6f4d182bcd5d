// Executor: runs a program's instructions over its arena. Allocates nothing in a step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/exec/program_memory.h"
#include "engine/plan/program.h"

namespace trainscope {

// The first tensor of a step that holds what no tensor should.
struct BadTensor {
  std::string value;
  std::string node;  // empty for an input, parameter or state
  std::string op;    // of the node, else the value's kind
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t elements = 0;
};

class Executor {
 public:
  // The program must outlive the executor. `parameters` gives the storage of external values, by
  // name, on the same device; it must outlive the executor too.
  explicit Executor(const Program& program, const Executor* parameters = nullptr);
  // Waits for the device: what it has been given may still refer to this executor.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Program& program() const { return program_; }

  // What the program's values hold, between steps.
  ProgramMemory& memory() { return memory_; }
  const ProgramMemory& memory() const { return memory_; }
  void load_initial() { memory_.load_initial(); }
  bool has(std::string_view value_name) const { return memory_.has(value_name); }
  void write(std::string_view value_name, const Tensor& elements) {
    memory_.write(value_name, elements);
  }
  Tensor read(std::string_view value_name) const { return memory_.read(value_name); }

  // Forward and backward phase. The inputs must have been written since the last one: once they are
  // read, their bytes hold other tensors.
  void run_micro_step();
  // The update phase, after the last micro-step.
  void run_update();

  // The highest byte that any buffer bound so far ends at, workspaces in full, in whole units of
  // the plan's alignment. Equal to program().arena_bytes after a full step.
  std::int64_t used_bytes() const { return used_bytes_; }
  // The same of host memory; equal to program().host.bytes after a full step.
  std::int64_t used_host_bytes() const { return used_host_bytes_; }
  bool guard_intact() const { return memory_.guard_intact(); }

  // The first bad input, parameter or state; if there is none, runs forward and backward again and
  // names the first tensor with a NaN, or else the first with +infinity. (-infinity is what
  // attention masks are made of.) The inputs must have been written again: a step uses their bytes
  // for other tensors once they are read.
  std::optional<BadTensor> find_bad_tensor();

  // Called around every instruction, for tests and tracing. Null by default.
  struct Observer {
    virtual ~Observer() = default;
    virtual void before(std::size_t instruction) = 0;
    virtual void after(std::size_t instruction) = 0;
    // Whether nothing else may run meanwhile: batch tiles then run op by op. Otherwise the calls
    // are those around the first tile of each op, on the calling thread.
    virtual bool alone() const { return false; }
  };
  void set_observer(Observer* observer) { observer_ = observer; }

 private:
  struct Call {
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    void* workspace = nullptr;
  };
  struct Bound {
    Call whole;
    std::vector<Call> tiles;          // of an instruction in a tiled section
    std::int64_t end_bytes = 0;       // of its highest buffer
    std::int64_t host_end_bytes = 0;  // ... in host memory
  };
  std::int64_t end_of(ValueId value, bool host = false) const;
  std::vector<ValueId> given_values() const;
  Call call_of(const Instruction& instruction) const;
  std::vector<Call> tile_calls(const Instruction& instruction, const Call& whole) const;
  void run(std::size_t begin, std::size_t end);
  void run_instruction(std::size_t i);
  void run_tile(std::size_t i, int tile);
  void run_section(const TiledSection& section);
  void add_partials(std::size_t begin, std::size_t end, int tile);
  void copy_states(Phase first, Phase last);

  const Program& program_;
  ProgramMemory memory_;
  std::vector<Bound> calls_;  // by instruction
  std::int64_t used_bytes_ = 0;
  std::int64_t used_host_bytes_ = 0;
  Observer* observer_ = nullptr;
};

}  // namespace trainscope
