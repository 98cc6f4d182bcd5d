// Sums, stores, scaled copies and increments: what no compiler turns into a call of the C library,
// whose stores go around the caches where there are many.
#include "kernels/cpu/roofs/memory_loops.h"

#include <unistd.h>

#include "kernels/cpu/support/widest.h"

namespace trainscope::cpu {
namespace {

// A register, of a line or of half of one.
using Half [[gnu::vector_size(32)]] = float;

// f on registers of Line or Half, by what the processor has.
template <class F>
void in_widest_lines(std::int64_t lines, const Line* from, Line* to, const F& f) {
  if (has_avx512()) {
    in_avx512(f, lines, from, to);
  } else {
    in_avx2(f, 2 * lines, reinterpret_cast<const Half*>(from), reinterpret_cast<Half*>(to));
  }
}

struct Read {
  template <class Register>
  void operator()(std::int64_t registers, const Register* from, Register*) const {
    Register sums[kLinesTogether] = {};
    for (std::int64_t i = 0; i < registers; i += kLinesTogether) {
      for (std::int64_t k = 0; k < kLinesTogether; ++k) sums[k] += from[i + k];
    }
    Register sum = {};
    for (const Register& each : sums) sum += each;
    asm volatile("" : : "m"(sum) : "memory");
  }
};

struct Write {
  float value;

  template <class Register>
  void operator()(std::int64_t registers, const Register*, Register* to) const {
    Register stored = Register{} + value;
    for (std::int64_t i = 0; i < registers; i += kLinesTogether) {
      for (std::int64_t k = 0; k < kLinesTogether; ++k) to[i + k] = stored;
      stored += 1.0F;
    }
    asm volatile("" : : : "memory");
  }
};

struct Copy {
  template <class Register>
  void operator()(std::int64_t registers, const Register* from, Register* to) const {
    for (std::int64_t i = 0; i < registers; i += kLinesTogether) {
      for (std::int64_t k = 0; k < kLinesTogether; ++k) to[i + k] = from[i + k] + 1.0F;
    }
    asm volatile("" : : : "memory");
  }
};

struct UpdateInPlace {
  template <class Register>
  void operator()(std::int64_t registers, const Register*, Register* lines) const {
    for (std::int64_t i = 0; i < registers; i += kLinesTogether) {
      for (std::int64_t k = 0; k < kLinesTogether; ++k) lines[i + k] += 1.0F;
    }
    asm volatile("" : : : "memory");
  }
};

}  // namespace

void read_lines(const Line* from, std::int64_t lines) {
  in_widest_lines(lines, from, nullptr, Read{});
}

void write_lines(Line* to, std::int64_t lines, float value) {
  in_widest_lines(lines, nullptr, to, Write{.value = value});
}

void copy_lines(const Line* from, std::int64_t lines, Line* to) {
  in_widest_lines(lines, from, to, Copy{});
}

void update_lines(Line* lines, std::int64_t count) {
  in_widest_lines(count, nullptr, lines, UpdateInPlace{});
}

std::int64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::int64_t>(pages) * page : 0;
}

}  // namespace trainscope::cpu
