// The ops of a plugin as rows of the op table.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/op_def.h"
#include "include/trainscope/plugin.h"

namespace trainscope {

// Rows with all that the plugin says of its ops. `ops` are those that there are. Throws kBadInput
// for an op with a fault: a name that exists, no shape rule, a gradient of another form ...
std::vector<OpDef> plugin_rows(const plugin::Plugin& plugin, const OpTable& ops);

}  // namespace trainscope
