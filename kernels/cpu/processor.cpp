// oneDNN's view of the processor.
#include "kernels/cpu/processor.h"

#include <cpuid.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

namespace trainscope::cpu {
namespace {

// A set of instructions has those of the smaller ones as bits.
bool has(dnnl::cpu_isa wanted) {
  limit_onednn();
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool has_avx512() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core);
  return kHas;
}

bool has_bf16_products() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core_bf16) && __builtin_cpu_is("amd") != 0;
  return kHas;
}

bool hides_amx_tiles() {
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kAmxTile = 1U << 24;  // in edx of leaf 7
  constexpr unsigned kTiles = 0x1D;        // eax: the last palette, of which 0 has no tiles
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned features = 0;
  if (__get_cpuid_count(kFeatures, 0, &a, &b, &c, &features) == 0) return false;
  if ((features & kAmxTile) == 0) return false;
  unsigned palettes = 0;
  unsigned d = 0;
  return __get_cpuid_count(kTiles, 0, &palettes, &b, &c, &d) == 0 || palettes == 0;
}

void limit_onednn() {
  static const bool kLimited = [] {
    const bool asked =
        std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr;
    return !asked && hides_amx_tiles() &&
           dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16) == dnnl::status::success;
  }();
  static_cast<void>(kLimited);
}

}  // namespace trainscope::cpu
