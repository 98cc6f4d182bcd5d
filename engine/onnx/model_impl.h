// What an OnnxModel holds; private to engine/onnx.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/onnx/exporter_marks.h"
#include "engine/onnx/import.h"
#include "engine/onnx/parameters.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/tensor_file.h"
#include "engine/onnx/validate.h"

namespace trainscope {

struct OnnxModel::Impl {
  std::filesystem::path path;
  pb::ModelProto proto;  // validated; the elements of its initializers are in `tensors` instead
  std::uint64_t hash = 0;
  ModelFacts facts;
  std::unordered_map<std::string_view, int> initializer_index;  // into proto and facts

  // What the exporter tells, and what was mended by it (initializers/restore.h). The marks of nodes
  // are those of the file's nodes: `proto` may have more.
  ExporterMarks marks;
  std::vector<RestoredInitializer> restored;
  std::map<std::string, std::string> tied;  // names of parameters that are another one's too
  std::set<std::string> lost;               // parameters that the file has no longer
  std::set<std::string> partial;            // those of which it has only the rows that are read
  std::set<std::string> reshaped;           // those whose shape in the module it does not tell
  std::set<std::string> added;  // those that a number is added to which it does not tell
  std::vector<ParameterFault> faults;
  std::vector<ParameterFault> notes;
  std::vector<std::string> remarks;  // what the file tells and training does

  // Where PyTorch lets no gradient flow (initializers/gradient_stops.h). By output of a lookup: the
  // index whose row gets none there. By first output of a node: the inputs that get none.
  std::unordered_map<std::string, std::int64_t> padding_rows;
  std::unordered_map<std::string, std::vector<int>> stopped_inputs;

  // The model's own functions by domain and name.
  std::map<std::pair<std::string_view, std::string_view>, const pb::FunctionProto*> functions;

  // Elements of the initializer at an index; those in other files are read at the first call.
  SharedTensor tensor(int index) const;
  // Whether its elements were left out on purpose (OnnxModel::shapes_from_bytes).
  bool is_unread(int index) const {
    return files.is_unread() &&
           proto.graph().initializer(index).data_location() == pb::TensorProto::EXTERNAL;
  }
  // A tensor inside a node's attribute may lie in another file too.
  ExternalFiles& external_files() const { return files; }

  mutable std::mutex mutex;  // over `tensors`
  mutable std::vector<SharedTensor> tensors;
  mutable ExternalFiles files;
};

}  // namespace trainscope
