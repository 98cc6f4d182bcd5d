// Builds the op table from the families listed in families.def.
#include "engine/ops/standard_ops.h"

#include <utility>
#include <vector>

namespace trainscope {

#define FAMILY(name) std::vector<OpDef> name##_ops();
#include "engine/ops/families.def"
#undef FAMILY

namespace {

OpTable& table_of_all() {
  static OpTable all = [] {
    OpTable table;
#define FAMILY(name) table.add(name##_ops());
#include "engine/ops/families.def"
#undef FAMILY
    return table;
  }();
  return all;
}

}  // namespace

OpTable standard_ops() { return table_of_all(); }

const OpTable& shared_ops() { return table_of_all(); }

void add_ops(std::vector<OpDef> rows) { table_of_all().add(std::move(rows)); }

}  // namespace trainscope
