// oneDNN's view of the processor.
#include "kernels/cpu/processor.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace trainscope::cpu {
namespace {

// A set of instructions has those of the smaller ones as bits.
bool has(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool has_avx512() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core);
  return kHas;
}

bool has_bf16_products() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core_bf16);
  return kHas;
}

}  // namespace trainscope::cpu
