// How a kernel of a family starts its __global__ functions, on a GPU or in the emulator.
//
//   launch(args.call, {.blocks = rows, .threads = 256}, softmax_rows<float>, x, y, columns);
//
// Arguments are passed by value, at most 32764 bytes, and a launch reads nothing else of the
// host's: so it can be captured and replayed. It neither waits nor allocates. Without blocks
// nothing is launched. What CUDA refuses is said through call.fail with the kernel's launch sizes
// and the stream.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

// How many threads a launch has: blocks (x at most 2^31 - 1, y and z 65,535) of threads (1,024 in
// all), and the bytes of TRAINSCOPE_SHARED_DYNAMIC (227 KiB with the static ones).
struct Grid {
  dim3 blocks = dim3(1);
  dim3 threads = dim3(1);
  std::size_t shared_bytes = 0;

  bool empty() const { return blocks.x == 0 || blocks.y == 0 || blocks.z == 0; }
};

// Of all arguments of a launch, on GPUs of compute capability 7.0 and above since CUDA 12.1.
inline constexpr std::size_t kMaxArgumentBytes = 32764;

#ifdef TRAINSCOPE_EMULATE

// How a simulated CUDA runtime calls kernels of these parameters.
template <class... Parameters>
emulator::KernelCaller kernel_caller() {
  static constexpr std::size_t kBytes[] = {sizeof(Parameters)..., 0};
  return {.parameters = typeid(void(Parameters...)).name(),
          .bytes = std::span(kBytes, sizeof...(Parameters)),
          .call = [](const void* kernel, void* const* arguments) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
              reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel))(
                  *static_cast<const Parameters*>(arguments[I])...);
            }
            (std::index_sequence_for<Parameters...>());
          }};
}
template <class... Parameters>
inline const bool kHasCaller =
    (emulator::kernel_callers().push_back(kernel_caller<Parameters...>()), true);

template <class... Parameters, class... Arguments>
void launch(const CallContext& /*call*/, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert((0 + ... + sizeof(Parameters)) <= kMaxArgumentBytes);
  static_cast<void>(kHasCaller<Parameters...>);
  if (grid.empty()) return;
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  auto thread = [kernel, &values] { std::apply(kernel, values); };
  std::apply(
      [&](const auto&... value) {
        const emulator::KernelArgument addresses[] = {{&value, sizeof value}..., {}};
        emulator::run_grid(
            {.blocks = grid.blocks,
             .threads = grid.threads,
             .shared_bytes = grid.shared_bytes,
             .context = &thread,
             .thread = [](void* context) { (*static_cast<decltype(thread)*>(context))(); },
             .kernel = reinterpret_cast<const void*>(kernel),
             .arguments = std::span(addresses, sizeof...(value))});
      },
      values);
}

#else

// Queues the kernel; the rest of launch() for all types of arguments.
void launch_kernel(const CallContext& call, const Grid& grid, const void* kernel, void** arguments);

template <class... Parameters, class... Arguments>
void launch(const CallContext& call, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert((0 + ... + sizeof(Parameters)) <= kMaxArgumentBytes);
  if (grid.empty()) return;
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {static_cast<void*>(&value)..., nullptr};
        launch_kernel(call, grid, reinterpret_cast<const void*>(kernel), addresses);
      },
      values);
}

#endif

// Queues the copy of `bytes` bytes between memories that the device reaches, which do not overlap.
void copy_bytes(const CallContext& call, void* to, const void* from, std::size_t bytes);

}  // namespace trainscope::cuda
