// Running sequences of oneDNN primitives on planned memory.
#include "kernels/cpu/support/onednn.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

using Dims = dnnl::memory::dims;

std::size_t aligned(std::size_t bytes) { return round_up(bytes, kAlignment); }

// Of a tensor whose last axis is fastest.
Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size() - 1; axis > 0; --axis) {
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(1, dims[axis]);
  }
  return strides;
}

#ifdef _OPENMP
int max_threads() { return omp_get_max_threads(); }
void set_threads(int threads) { omp_set_num_threads(threads); }
#else
// oneDNN's own OpenMP cannot be told from here: OMP_NUM_THREADS decides.
int max_threads() { return 1; }
void set_threads(int) {}
#endif

// Tells who watches that oneDNN's loops have the threads.
class LibraryRegion {
 public:
  explicit LibraryRegion(const RunArgs& args)
      : watch_(args.threads > 1 ? args.call.watch : nullptr), threads_(args.threads) {
    if (watch_ != nullptr) watch_->library_begin(watch_->context, threads_);
  }
  ~LibraryRegion() {
    if (watch_ != nullptr) watch_->library_end(watch_->context, threads_);
  }
  LibraryRegion(const LibraryRegion&) = delete;
  LibraryRegion& operator=(const LibraryRegion&) = delete;

 private:
  const ThreadWatch* watch_;
  int threads_;
};

}  // namespace

ThreadScope::ThreadScope(int threads) : previous_(max_threads()) {
  if (threads != previous_) set_threads(threads);
}
ThreadScope::~ThreadScope() { set_threads(previous_); }

dnnl::memory::data_type onednn_type(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : kF32;
}

const Dims& in_32_bits(const Dims& sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool fit =
      std::ranges::all_of(sizes, [](std::int64_t n) { return n >= -kMost && n <= kMost; });
  if (!fit) throw Beyond32Bits();
  return sizes;
}

dnnl::memory::desc strided_desc(const Dims& dims, dnnl::memory::data_type type,
                                const Dims& strides) {
  return {in_32_bits(dims), type, in_32_bits(strides)};
}

dnnl::memory::desc plain_desc(const Dims& dims, dnnl::memory::data_type type) {
  return strided_desc(dims, type, dense_strides(dims));
}

dnnl::memory::desc any_desc(const Dims& dims) {
  constexpr std::int64_t kMostChannelsTogether = 16;
  Dims in_blocks = dims;
  if (dims.size() > 1) in_blocks[1] = round_up(dims[1], kMostChannelsTogether);
  in_32_bits(dense_strides(in_blocks));
  return {in_32_bits(dims), kF32, dnnl::memory::format_tag::any};
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

bool is_usable(const dnnl::primitive_desc_base& description) {
  if (!description) return false;
  const std::string_view name = description.impl_info_str();
  return !name.starts_with("ref") && name.find("gemm:") == std::string_view::npos;
}

OneDnnProgram::OneDnnProgram() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

OneDnnProgram::Memory OneDnnProgram::add_slot(const dnnl::memory::desc& desc, Place place,
                                              std::size_t at) {
  slots_.push_back({dnnl::memory(desc, engine_, nullptr), place, at});
  return slots_.size() - 1;
}

OneDnnProgram::Memory OneDnnProgram::input(int index, const dnnl::memory::desc& desc) {
  return add_slot(desc, Place::kInput, static_cast<std::size_t>(index));
}

OneDnnProgram::Memory OneDnnProgram::output(int index, const dnnl::memory::desc& desc) {
  return add_slot(desc, Place::kOutput, static_cast<std::size_t>(index));
}

OneDnnProgram::Memory OneDnnProgram::scratch(const dnnl::memory::desc& desc) {
  const Memory memory = add_slot(desc, Place::kWorkspace, scratch_bytes_);
  scratch_bytes_ += aligned(desc.get_size());
  return memory;
}

OneDnnProgram::Memory OneDnnProgram::reordered(Memory from, const dnnl::memory::desc& desc) {
  if (slots_[from].memory.get_desc() == desc) return from;
  const Memory to = scratch(desc);
  reorder(from, to);
  return to;
}

OneDnnProgram::Memory OneDnnProgram::writable(Memory to, const dnnl::memory::desc& desc) {
  return slots_[to].memory.get_desc() == desc ? to : scratch(desc);
}

void OneDnnProgram::finish_output(Memory from, Memory to) {
  if (from != to) reorder(from, to);
}

void OneDnnProgram::reorder(Memory from, Memory to) {
  const dnnl::reorder::primitive_desc description(engine_, slots_[from].memory.get_desc(), engine_,
                                                  slots_[to].memory.get_desc(), user_scratchpad());
  add(dnnl::reorder(description), description.scratchpad_desc(),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

// Forward primitives leave a workspace to backward ones.
void OneDnnProgram::count_bytes(const Arguments& arguments, const dnnl::memory::desc& scratchpad) {
  const auto names_dst = [](const auto& argument) { return argument.first == DNNL_ARG_DST; };
  const bool is_forward = std::ranges::any_of(arguments, names_dst);
  for (const auto& [name, memory] : arguments) {
    const bool result = name == DNNL_ARG_DST || name == DNNL_ARG_DIFF_SRC ||
                        name == DNNL_ARG_DIFF_WEIGHTS || (name == DNNL_ARG_WORKSPACE && is_forward);
    const auto bytes = static_cast<double>(slots_[memory].memory.get_desc().get_size());
    (result ? moved_.bytes_written : moved_.bytes_read) += bytes;
  }
  moved_.add_passed_on(static_cast<double>(scratchpad.get_size()));
}

void OneDnnProgram::add(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                        const Arguments& arguments) {
  count_bytes(arguments, scratchpad);
  Call call{.primitive = primitive, .arguments = {}};
  for (const auto& [name, memory] : arguments) {
    call.arguments.push_back({name, slots_[memory].memory.get()});
  }
  if (scratchpad.get_size() > 0) {
    const Memory memory = add_slot(scratchpad, Place::kScratchpad, 0);
    call.arguments.push_back({DNNL_ARG_SCRATCHPAD, slots_[memory].memory.get()});
    scratchpad_bytes_ = std::max(scratchpad_bytes_, aligned(scratchpad.get_size()));
  }
  calls_.push_back(std::move(call));
}

void* OneDnnProgram::address(const Slot& slot, const RunArgs& args) const {
  auto* workspace = static_cast<std::byte*>(args.workspace);
  switch (slot.place) {
    case Place::kInput:
      return args.inputs[slot.at].data;
    case Place::kOutput:
      return args.outputs[slot.at].data;
    case Place::kWorkspace:
      return workspace + slot.at;
    case Place::kScratchpad:
      return workspace + scratch_bytes_;
  }
  return nullptr;
}

void OneDnnProgram::run(const RunArgs& args) const {
  for (const Slot& slot : slots_) {
    void* wanted = address(slot, args);
    if (slot.memory.get_data_handle() != wanted) slot.memory.set_data_handle(wanted, stream_);
  }
  // The C function, because the C++ one would copy the arguments into a new map at each call.
  for (const Call& call : calls_) {
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(call.primitive.get(), stream_.get(),
                               static_cast<int>(call.arguments.size()), call.arguments.data()),
        "oneDNN could not execute a primitive");
  }
}

void run_program(const RunArgs& args) {
  const ThreadScope scope(args.threads);
  const LibraryRegion region(args);
  try {
    static_cast<const OneDnnProgram*>(args.state)->run(args);
  } catch (const dnnl::error& error) {
    using Code = DeviceStatus::Code;
    const bool memory = error.status == dnnl_out_of_memory;
    args.call.fail(memory ? Code::kOutOfMemory : Code::kFailed, error.what());
  }
}

}  // namespace trainscope::cpu
