// Nodes of other opsets as nodes of opset 17, the one that the op rows speak.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/onnx/importer/import_scope.h"

namespace trainscope {

// Rewrites a node into the form of its row's `to` (of opset 17 when it comes from above).
using Adapter = std::vector<SourceNode> (*)(ImportScope&, SourceNode);

// The form that an op has in opsets [from, to). Without `convert` it means the same as the next.
struct AdapterRow {
  std::string_view op;
  int from = 0;
  int to = 0;
  Adapter convert = nullptr;
  std::string_view becomes = {};  // the op, perhaps of ours, for one that opset 17 does not have
};

enum class Adaptation : std::uint8_t { kAsIs, kConvert, kUnknown };
struct AdapterChoice {
  Adaptation adaptation = Adaptation::kAsIs;
  const AdapterRow* row = nullptr;  // for kConvert
};
// How a node of ONNX's domain gets nearer to opset 17. Opsets 13 to 17 need rows where a form
// differs; older ones also where ONNX's own schemas say that the op has changed since.
AdapterChoice adapter_for(std::string_view op, int opset);
// Whether the op itself has gone, so that nodes of it need no row of their own.
bool is_replaced(const AdapterChoice& choice);

// A Resize of opset 18 or newer (resize_axes.cpp).
std::vector<SourceNode> resize_of_all_axes(ImportScope& scope, SourceNode node);

// The rows, by the opsets that they convert from.
std::span<const AdapterRow> oldest_rows();  // adapters_oldest.cpp: below 7
std::span<const AdapterRow> older_rows();   // adapters_older.cpp: below 14
std::span<const AdapterRow> plain_rows();   // adapters_plain.cpp: below 14, nothing to convert
std::span<const AdapterRow> newer_rows();   // adapters_newer.cpp: above 17
std::span<const AdapterRow> type_rows();    // adapters_types.cpp: of any opset, by element types

}  // namespace trainscope
