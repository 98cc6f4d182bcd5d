// Types by their names.
#include "engine/bisect/limits.h"

#include <algorithm>
#include <iterator>

namespace trainscope {

double rounding_of(std::string_view dtype) {
  const auto* const found =
      std::ranges::find(kAllDTypes, dtype, [](DType type) { return name_of(type); });
  return rounding_of(found == std::end(kAllDTypes) ? DType::kF32 : *found);
}

}  // namespace trainscope
