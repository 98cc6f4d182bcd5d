// Bodies of nodes as ONNX graphs, and what they have in common with the graph of a stage.
#pragma once

#include "engine/ir/graph.h"
#include "engine/onnx/proto.h"

namespace trainscope {

// Name and type.
pb::ValueInfoProto value_info(const Value& value);
// A node of a stage, with its note.
pb::NodeProto stage_node_proto(const Graph& graph, const Node& node);
// A body with its constants' elements.
pb::GraphProto body_proto(const Graph& body);

}  // namespace trainscope
