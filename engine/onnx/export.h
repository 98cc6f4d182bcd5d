// ONNX files out: any stage of a graph, and the trained model for inference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/folder.h"
#include "engine/core/tensor.h"
#include "engine/ir/graph.h"
#include "engine/onnx/import.h"

namespace trainscope {

// The present elements of a parameter or state; null: as in the graph or source model.
using TensorByName = std::function<SharedTensor(std::string_view name)>;

enum class Weights : std::uint8_t {
  kAuto,      // in the model file, or beside it when they exceed 1 GiB
  kInline,    // in the model file; fails beyond 2 GiB, the limit of the format
  kExternal,  // in MODEL.onnx.data beside it
  kOmit,      // parameters and states become inputs of the file; constants stay
};

struct ExportOptions {
  Weights weights = Weights::kAuto;
  TensorByName tensor = {};
};

// Writes a stage as valid ONNX (IR 8, opset 17, our own ops in domain ai.trainscope). Reading it
// back with to_graph gives a graph with the same print(): kinds, phases, provenance, updates,
// gradients and loss travel in metadata_props and in the nodes' doc_string. States without initial
// elements (zeros) become inputs of the file. Loss, gradients and updated values are outputs of the
// file too, so that other tools can run it. Files are replaced in one step.
void write_onnx(const Graph& graph, const std::filesystem::path& path,
                const ExportOptions& options = {});
void write_onnx(const Graph& graph, const FolderEntry& entry, const ExportOptions& options = {});
// The same as the bytes of one file (weights inline or omitted).
std::string onnx_bytes(const Graph& graph, const ExportOptions& options = {});

struct InferenceOptions {
  Weights weights = Weights::kAuto;  // kOmit is not possible here
  // Trained values; their dtype is converted to the initializer's.
  TensorByName tensor = {};
  // Outputs that inference does not need (a loss in the model), with all that only they need.
  std::vector<std::string> drop_outputs = {};
};

// Writes the source model with trained initializers for inference: Dropout gone, batch norm in
// inference form; names, symbolic dimensions, opset and everything else as in the source.
void export_inference(const OnnxModel& source, const std::filesystem::path& path,
                      const InferenceOptions& options);
void export_inference(const OnnxModel& source, const FolderEntry& entry,
                      const InferenceOptions& options);

}  // namespace trainscope
