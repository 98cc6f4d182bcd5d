// What became of an ONNX model's nodes and values when it was read.
#pragma once

#include "engine/ir/rewrite_log.h"
#include "engine/onnx/import.h"

namespace trainscope {

// `imported` is the graph that to_graph made of the model. Nodes and values of the model have no
// serials: the log has an entry for those that are not in the graph under their names, and for what
// is in the graph and not in the model.
RewriteLog import_log(const OnnxModel& model, const Graph& imported);

}  // namespace trainscope
