// TensorProto to Tensor and back: checked types, byte counts and external data.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "engine/core/file.h"
#include "engine/core/tensor.h"
#include "engine/onnx/proto.h"

namespace trainscope {

// Files of external data beside a model, each opened and checked once.
class ExternalFiles {
 public:
  ExternalFiles() = default;
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Elements in other files are taken to be there and never read: for plans, which need shapes
  // only.
  static ExternalFiles unread() {
    ExternalFiles files;
    files.unread_ = true;
    return files;
  }
  bool is_unread() const { return unread_; }
  // kBadInput when the location leaves the folder or is no regular file of its own.
  const MappedFile& open(const std::string& location);

 private:
  std::filesystem::path folder_;  // empty: external data is refused
  bool unread_ = false;
  std::map<std::string, MappedFile> files_;
};

// "float32", "bfloat16", "type 99": ONNX's names, for messages.
std::string onnx_type_name(int data_type);
// ONNX's number of a dtype.
int onnx_type_of(DType dtype);
// kBadInput, naming `what`, for a type without a dtype of ours.
DType dtype_of_onnx(int data_type, std::string_view what);

// Dimensions as a Shape of a tensor that can exist: kBadInput for more than kMaxRank of them, a
// negative one, or more bytes than any machine has. `what` names the tensor in messages.
TensorType checked_type(DType dtype, std::span<const std::int64_t> dims, std::string_view what);

// Type and layout without touching the elements: the right field, count, place in its file.
TensorType check_tensor(const pb::TensorProto& proto, std::string_view what, ExternalFiles& files);
// The elements of a tensor that passed check_tensor.
Tensor read_tensor(const pb::TensorProto& proto, std::string_view what, ExternalFiles& files);
// Frees the elements held in the proto; name, type and dims stay.
void clear_elements(pb::TensorProto& proto);

// Bytes that a file has for the elements: several of less than a byte are packed in one.
std::size_t file_bytes(const TensorType& type);
bool is_packed(const Tensor& tensor);
// u8 elements: those of a tensor whose type files pack, the first in the low bits of a byte.
Tensor packed(const Tensor& tensor);
// The elements into the proto's raw_data.
void set_raw_data(pb::TensorProto& proto, const Tensor& tensor);

// Name, type and dims without elements.
pb::TensorProto tensor_header(std::string_view name, const TensorType& type);
pb::TensorProto tensor_proto(std::string_view name, const Tensor& tensor);

}  // namespace trainscope
