// A sequence of oneDNN primitives as one kernel: everything is created by prepare, so that a run
// only sets addresses and executes.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/estimate.h"

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

// f(), on so many threads; out of memory is what the standard library throws then.
template <class F>
decltype(auto) in_onednn(int threads, F f) {
  const ThreadScope scope(threads);
  try {
    return f();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw;
  }
}

// Extents, strides, paddings or dilations as they go into any description: themselves. oneDNN cuts
// them to 32 bits inside, so that larger ones throw as what it refuses by itself does.
const dnnl::memory::dims& in_32_bits(const dnnl::memory::dims& sizes);
struct Beyond32Bits : dnnl::error {
  Beyond32Bits() : error(dnnl_unimplemented, "oneDNN computes with sizes in 32 bits") {}
};

inline constexpr Support kNoOneDnnCode{"oneDNN has no optimised code for this case"};

// f(engine): whether oneDNN can do a case. To many it says no by an exception.
template <class F>
Support onednn_supports(int threads, F f) {
  try {
    return in_onednn(threads, [&] { return f(dnnl::engine(dnnl::engine::kind::cpu, 0)); });
  } catch (const Beyond32Bits&) {
    return {"oneDNN computes with sizes and strides in 32 bits"};
  } catch (const dnnl::error&) {
    return {"oneDNN refuses this case"};
  }
}

inline constexpr auto kF32 = dnnl::memory::data_type::f32;
// f32 or bf16.
dnnl::memory::data_type onednn_type(DType dtype);

// With a stride in elements for each axis.
dnnl::memory::desc strided_desc(const dnnl::memory::dims& dims, dnnl::memory::data_type type,
                                const dnnl::memory::dims& strides);
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
  // Bytes that all primitives read and write, scratchpads once each.
  const Work& moved() const { return moved_; }
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
  void count_bytes(const Arguments& arguments, const dnnl::memory::desc& scratchpad);
  void* address(const Slot& slot, const RunArgs& args) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Slot> slots_;
  std::vector<Call> calls_;
  std::size_t scratch_bytes_ = 0;
  std::size_t scratchpad_bytes_ = 0;  // one region that all calls use in turn
  Work moved_;
};

// `prepare` and `run` of a kernel whose state is a program that `build` fills.
template <void (*build)(const PrepareArgs&, OneDnnProgram&)>
Prepared prepare_program(const PrepareArgs& args) {
  return in_onednn(args.threads, [&]() -> Prepared {
    auto program = std::make_shared<OneDnnProgram>();
    build(args, *program);
    return {.workspace_bytes = program->workspace_bytes(), .state = program};
  });
}
void run_program(const RunArgs& args);
// So many FLOPs, and the bytes of that program.
template <void (*build)(const PrepareArgs&, OneDnnProgram&)>
Estimate estimate_program(const PrepareArgs& args, double flops) {
  return in_onednn(args.threads, [&] {
    OneDnnProgram program;
    build(args, program);
    Work work(flops, 0.0, 0.0);
    work += program.moved();
    return work.estimate();
  });
}

}  // namespace trainscope::cpu
