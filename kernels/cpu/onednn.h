// A sequence of oneDNN primitives as one kernel: everything is created by prepare, so that a run
// only sets addresses and executes.
#pragma once

#include <cstddef>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// oneDNN takes the number of its threads from OpenMP, when it creates primitives and when it runs
// them; both must see the same number.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int previous_;
};

inline constexpr auto kF32 = dnnl::memory::data_type::f32;
// f32 or bf16.
dnnl::memory::data_type onednn_type(DType dtype);

// Dense, last axis fastest.
dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims, dnnl::memory::data_type type = kF32);
// f32 in whatever layout the primitive likes best.
dnnl::memory::desc any_desc(const dnnl::memory::dims& dims);
// Scratchpads are ours to plan.
dnnl::primitive_attr user_scratchpad();
// Whether oneDNN has code for the case that is worth it: not its slow reference, and not what is
// built on its own gemm, which allocates buffers that no plan knows of.
bool is_usable(const dnnl::primitive_desc_base& description);

class OneDnnProgram {
 public:
  // Where a memory's bytes are at run time.
  using Memory = std::size_t;

  OneDnnProgram();
  const dnnl::engine& engine() const { return engine_; }

  Memory input(int index, const dnnl::memory::desc& desc);
  Memory output(int index, const dnnl::memory::desc& desc);
  Memory scratch(const dnnl::memory::desc& desc);  // in the workspace
  // `from` itself when it has this layout already, else a copy in the workspace.
  Memory reordered(Memory from, const dnnl::memory::desc& desc);
  // `to` itself when it has this layout, else a workspace memory to be written; `finish_output`
  // then copies it to `to`.
  Memory writable(Memory to, const dnnl::memory::desc& desc);
  void finish_output(Memory from, Memory to);

  using Arguments = std::vector<std::pair<int, Memory>>;
  void add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           const Arguments& arguments);

  std::size_t workspace_bytes() const { return scratch_bytes_ + scratchpad_bytes_; }
  void run(const RunArgs& args) const;

 private:
  enum class Place { kInput, kOutput, kWorkspace, kScratchpad };
  struct Slot {
    dnnl::memory memory;
    Place place;
    std::size_t at;  // index of the input or output, offset in the workspace
  };
  struct Call {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  Memory add_slot(const dnnl::memory::desc& desc, Place place, std::size_t at);
  void reorder(Memory from, Memory to);
  void* address(const Slot& slot, const RunArgs& args) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Slot> slots_;
  std::vector<Call> calls_;
  std::size_t scratch_bytes_ = 0;
  std::size_t scratchpad_bytes_ = 0;  // one region that all calls use in turn
};

// `prepare` and `run` of a kernel whose state is a program.
Prepared prepared(std::shared_ptr<const OneDnnProgram> program);
void run_program(const RunArgs& args);

}  // namespace trainscope::cpu
