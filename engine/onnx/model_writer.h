// Writes a ModelProto and the elements of its tensors, inline or beside it, in one step each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/core/file.h"
#include "engine/core/tensor.h"
#include "engine/onnx/export.h"
#include "engine/onnx/proto.h"

namespace trainscope {

class ModelWriter {
 public:
  // `total_bytes` of all tensors decides for kAuto.
  ModelWriter(FolderEntry entry, Weights weights, std::uint64_t total_bytes);

  // Gives a tensor its elements; its name, type and dims are set already.
  void put(pb::TensorProto& proto, const Tensor& tensor);
  // Makes both files durable: elements first, then the model that points to them.
  void finish(const pb::ModelProto& model);

 private:
  FolderEntry entry_;
  std::unique_ptr<AtomicFile> data_file_;  // null: inline
  std::string location_;                   // of the data file, relative to the model's folder
};

}  // namespace trainscope
