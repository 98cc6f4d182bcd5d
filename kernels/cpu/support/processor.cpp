// What the processor and oneDNN can do, and limits on oneDNN.
#include "kernels/cpu/support/processor.h"

#include <cpuid.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>

namespace trainscope::cpu {
namespace {

// A set of instructions has those of the smaller ones as bits.
bool has(dnnl::cpu_isa wanted) {
  limit_onednn();
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

struct CpuidLeaf {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

// Zeros where the processor does not have it.
CpuidLeaf cpuid_leaf(unsigned leaf) {
  CpuidLeaf found;
  if (__get_cpuid_count(leaf, 0, &found.eax, &found.ebx, &found.ecx, &found.edx) == 0) return {};
  return found;
}

// Whether the user names the instructions that oneDNN may use.
bool names_isa_by_variable() {
  return std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr;
}

}  // namespace

bool has_avx512() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core);
  return kHas;
}

bool has_avx512_bf16() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core_bf16);
  return kHas;
}

bool prefers_avx512_bf16() { return has_avx512_bf16() && __builtin_cpu_is("amd") != 0; }

bool onednn_has_amx() {
  static const bool kHas = has(dnnl::cpu_isa::avx512_core_amx);
  return kHas;
}

bool hides_amx_tiles() { return hides_amx_tiles(cpuid_leaf(7).edx, cpuid_leaf(0x1D).eax); }

void limit_onednn() {
  static const bool kDone = [] {
    if (names_isa_by_variable() || !hides_amx_tiles()) return true;
    const auto status = dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    if (status != dnnl::status::success) {
      throw std::logic_error("oneDNN could not be kept from AMX: status " +
                             std::string(dnnl_status2str(static_cast<dnnl_status_t>(status))) +
                             " (it must not be in use before)");
    }
    return true;
  }();
  static_cast<void>(kDone);
}

}  // namespace trainscope::cpu
