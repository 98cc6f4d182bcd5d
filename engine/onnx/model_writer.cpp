// Writes a ModelProto and the elements of its tensors, inline or beside it, in one step each.
#include "engine/onnx/model_writer.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <exception>
#include <limits>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxAutoInlineBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxMessageBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kLeastExternalBytes = 1024;  // smaller tensors stay in the model file
constexpr std::uint64_t kAlignment = 4096;         // ONNX asks for pages, so that tools can map

// Protobuf writes through this. No exception passes through protobuf.
class FileSink : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileSink(AtomicFile& file) : file_(file) {}

  bool Write(const void* buffer, int size) override {
    try {
      file_.write(std::span(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(size)));
      return true;
    } catch (const Error&) {
      error_ = std::current_exception();
      return false;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  AtomicFile& file_;
  std::exception_ptr error_;
};

void add_entry(pb::TensorProto& proto, std::string_view key, std::string value) {
  pb::StringStringEntryProto& entry = *proto.add_external_data();
  entry.set_key(std::string(key));
  entry.set_value(std::move(value));
}

void pad(AtomicFile& file) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  std::uint64_t beyond = file.written_bytes() % kAlignment;
  if (beyond != 0) file.write(std::span(kZeros).first(kAlignment - beyond));
}

}  // namespace

ModelWriter::ModelWriter(FolderEntry entry, Weights weights, std::uint64_t total_bytes)
    : entry_(std::move(entry)) {
  bool beside = weights == Weights::kExternal ||
                (weights == Weights::kAuto && total_bytes > kMaxAutoInlineBytes);
  if (!beside) return;
  location_ = entry_.name + ".data";
  data_file_ = std::make_unique<AtomicFile>(entry_.folder / location_);
}

void ModelWriter::put(pb::TensorProto& proto, const Tensor& tensor) {
  if (is_packed(tensor)) return put(proto, packed(tensor));
  if (!data_file_ || tensor.bytes() < kLeastExternalBytes) {
    set_raw_data(proto, tensor);
    return;
  }
  pad(*data_file_);
  proto.set_data_location(pb::TensorProto::EXTERNAL);
  add_entry(proto, "location", location_);
  add_entry(proto, "offset", std::to_string(data_file_->written_bytes()));
  add_entry(proto, "length", std::to_string(tensor.bytes()));
  data_file_->write(std::span(tensor.data(), tensor.bytes()));
}

void ModelWriter::finish(const pb::ModelProto& model) {
  std::size_t bytes = model.ByteSizeLong();
  if (bytes > kMaxMessageBytes) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("the model file would have {}; the format ends at 2 GiB", human_bytes(bytes)))
        .at(printable(entry_.path().string()))
        .hint("write the weights beside it (external data)");
  }
  AtomicFile file(entry_);
  FileSink sink(file);
  bool written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor output(&sink, 1 << 20);
    written = model.SerializeToZeroCopyStream(&output) && output.Flush();
  }
  sink.rethrow();
  CHECK_INVARIANT(written);
  if (data_file_) data_file_->commit();
  file.commit();
}

}  // namespace trainscope
