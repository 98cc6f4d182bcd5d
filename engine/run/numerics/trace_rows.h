// Rows of a trace for values of a graph.
#pragma once

#include <string>

#include "engine/ir/graph.h"
#include "engine/run/numerics/traced_values.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// "2x3", as in the tables of reference models; "scalar".
std::string shape_cell(const Shape& shape);

// What is known of a value without its elements: name, type, and the node that makes it.
profiler::TraceRow trace_row(const Graph& graph, ValueId value, const TracedAs& as);

}  // namespace trainscope
