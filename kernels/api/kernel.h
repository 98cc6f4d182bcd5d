// What a kernel is: prepare once for given shapes, then run many times without allocating.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"
#include "kernels/api/thread_watch.h"

namespace trainscope {

// What `prepare` may look at. An absent optional input has `inputs[i].present == false`;
// data pointers are null at this point, except of inputs known at compile time (constants).
struct PrepareArgs {
  const Params& params;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  int threads = 1;
  const void* context = nullptr;  // of the kernel that is asked
};

// The answer of `prepare`: scratch bytes wanted during `run` (64-byte aligned, contents undefined,
// planned into the arena like any buffer) and state kept between runs (primitives, strides).
struct Prepared {
  std::size_t workspace_bytes = 0;
  std::shared_ptr<const void> state;
};

// The answer of `supports`: empty when the kernel takes the case, else why it does not, as a part
// of a sentence in static storage ("no AVX512_BF16 on this processor").
struct [[nodiscard]] Support {
  std::string_view why_not = {};

  constexpr explicit operator bool() const { return why_not.empty(); }
};
constexpr Support supported_if(bool holds, std::string_view why_not) {
  return holds ? Support{} : Support{.why_not = why_not};
}

// What one call computes and moves: additions and multiplications of one FLOP each, other functions
// as costs of ops count them; bytes of the operands and of the workspace, in whole passes. What a
// pass reads again soon, out of a cache, counts once.
struct Estimate {
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

// A queue of work on a device, done in its order (kernels/api/device.h).
enum class Stream : std::int32_t {};
inline constexpr Stream kComputeStream{0};   // of kernels
inline constexpr Stream kTransferStream{1};  // of copies between memory spaces

// The moment when all that a stream had been given is done.
struct Event {
  Stream stream = kComputeStream;
  std::int64_t ticket = 0;  // as the device counts them
};

// How a device's work went.
struct [[nodiscard]] DeviceStatus {
  enum class Code : std::uint8_t { kDone, kOutOfMemory, kBadInput, kFailed };
  Code code = Code::kDone;
  std::string message = {};  // of the kernel or the device's library; empty when done

  bool done() const { return code == Code::kDone; }
};

// What a kernel says when it could not do a call; of several threads that say so, one is heard.
class CallFailure {
 public:
  void report(DeviceStatus failure) {
    if (!reported_.test_and_set()) status_ = std::move(failure);
  }
  // Done where nothing was reported. Asked when all threads of the call have ended.
  const DeviceStatus& status() const { return status_; }

 private:
  std::atomic_flag reported_ = ATOMIC_FLAG_INIT;
  DeviceStatus status_;
};

// Where a kernel runs, whom it tells of its threads, and where it says that it could not. The
// engine gives the stream and the watch; the device adds the rest before it calls `run`. A kernel
// that runs another one passes its context on.
struct CallContext {
  Stream stream = kComputeStream;
  const ThreadWatch* watch = nullptr;  // null: nobody watches
  void* native_stream = nullptr;       // the device library's own handle of it; null on the CPU
  CallFailure* failure = nullptr;      // null: nobody asks

  void fail(DeviceStatus::Code code, std::string message) const {
    if (failure != nullptr) failure->report({.code = code, .message = std::move(message)});
  }
};

struct RunArgs {
  const Params& params;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  void* workspace = nullptr;
  const void* state = nullptr;
  int threads = 1;
  CallContext call = {};
};

// A kernel for one op and one dtype. `run` says through its call context what it cannot do, and
// goes on to its end: what its results hold then is not used. `supports` may refuse a case (then
// the next kernel in the table is asked); null means every case. `prepare` may be null: no
// workspace, no state. `estimate` says what a call of this kernel does where that is not the op's
// definition, whose cost it is given: transforms, padding, packing, copies; null means that it is.
struct Kernel {
  std::string_view name;  // "matmul.reference", "matmul.onednn"
  Support (*supports)(const PrepareArgs&) = nullptr;
  Prepared (*prepare)(const PrepareArgs&) = nullptr;
  void (*run)(const RunArgs&) = nullptr;
  Estimate (*estimate)(const PrepareArgs&, const Estimate& definition) = nullptr;
  // False: the result's last bits depend on the number of threads.
  bool same_for_any_threads = true;
  // True: products of transformed numbers, fewer than the definition has (Winograd). Rounds more.
  bool transforms = false;
  // What its functions but `run` find in their arguments; null: they ask for nothing. Lives as long
  // as the table.
  const void* context = nullptr;
};

// Calls body(context, tile) for the tiles [0, tiles), each on a thread of its own, 0 on the calling
// one, and returns when all have; they are a region of `watch`, if there is one. Allocates nothing.
using Fork = void (*)(int tiles, const ThreadWatch* watch, void* context,
                      void (*body)(void* context, int tile));

// Kernels of one back end by (op, dtype). The dtype is the op's "kernel dtype": bf16 or f16 where
// an input or output is stored so, else that of its first output that is a float, else of its first
// float input, else of its first input (see kernel_dtype in engine/ir/op_def.h). Later additions
// for the same key are preferred over earlier ones, so that the readable reference is added first
// and a faster kernel after it. What find() gives stays where it is when more are added.
class KernelTable {
 public:
  struct Row {
    std::string_view op;
    DType dtype;
    Kernel kernel;
  };

  void add(std::string_view op, DType dtype, Kernel kernel) {
    rows_.push_back({op, dtype, kernel});
  }
  const std::deque<Row>& rows() const { return rows_; }

  // All kernels for the key, the preferred one first.
  std::vector<const Kernel*> find(std::string_view op, DType dtype) const {
    std::vector<const Kernel*> found;
    for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
      if (row->op == op && row->dtype == dtype) found.push_back(&row->kernel);
    }
    return found;
  }

 private:
  std::deque<Row> rows_;
};

}  // namespace trainscope
