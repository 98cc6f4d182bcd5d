// Builds the op table from the families listed in families.def.
#include "engine/ops/standard_ops.h"

#include <vector>

namespace trainscope {

#define FAMILY(name) std::vector<OpDef> name##_ops();
#include "engine/ops/families.def"
#undef FAMILY

OpTable standard_ops() {
  OpTable table;
#define FAMILY(name) table.add(name##_ops());
#include "engine/ops/families.def"
#undef FAMILY
  return table;
}

}  // namespace trainscope
