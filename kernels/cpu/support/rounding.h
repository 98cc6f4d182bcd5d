// Division and multiples, rounded up, of counts.
#pragma once

#include <type_traits>

namespace trainscope::cpu {

template <class Int>
constexpr Int divide_up(Int n, std::type_identity_t<Int> part) {
  return (n + part - 1) / part;
}

template <class Int>
constexpr Int round_up(Int n, std::type_identity_t<Int> part) {
  return divide_up(n, part) * part;
}

}  // namespace trainscope::cpu
