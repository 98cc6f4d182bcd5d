// The built-in machine.
#include "engine/machine/machine.h"

namespace trainscope {

const Machine& default_machine() {
  constexpr Rate kBytes{.one = 1e10, .all = 2e10};
  static const Machine machine{.name = "two cores of a server, not measured",
                               .cores = 2,
                               .levels = {{.name = "memory",
                                           .bytes = std::int64_t{16} << 30,
                                           .read = kBytes,
                                           .write = kBytes,
                                           .copy = kBytes}},
                               .flops_per_second = {{DType::kF32, {.one = 5e10, .all = 1.8e11}}},
                               .seconds_per_call = 1e-6,
                               .seconds_per_fork = 3e-4 / 128};
  return machine;
}

}  // namespace trainscope
