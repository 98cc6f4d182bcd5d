// Reading a model file: bytes to a parsed, validated OnnxModel, and what it tells about itself.
#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/onnx/import.h"
#include "engine/onnx/initializers/restore.h"
#include "engine/onnx/model_impl.h"
#include "engine/onnx/stage_metadata.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxMessageBytes = std::numeric_limits<std::int32_t>::max();

// Hands a file to protobuf piece by piece and hashes it on the way. Reads by copying, so that a
// file cut short meanwhile is an error and not a signal. No exception passes through protobuf.
class HashedFile : public google::protobuf::io::CopyingInputStream {
 public:
  explicit HashedFile(const MappedFile& file) : file_(file) {}

  int Read(void* buffer, int size) override {
    try {
      std::uint64_t left = file_.size_bytes() - offset_;
      std::uint64_t count = std::min<std::uint64_t>(left, static_cast<std::uint64_t>(size));
      std::span<std::byte> into(static_cast<std::byte*>(buffer), count);
      file_.read(offset_, into);
      hasher_.bytes(into);
      offset_ += count;
      return static_cast<int>(count);
    } catch (const Error&) {
      error_ = std::current_exception();
      return -1;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  std::uint64_t hash() const { return hasher_.digest(); }

 private:
  const MappedFile& file_;
  std::uint64_t offset_ = 0;
  Hasher hasher_;
  std::exception_ptr error_;
};

void check_size(std::uint64_t bytes) {
  require(bytes > 0, ErrorCode::kBadInput, "the model file is empty");
  if (bytes <= kMaxMessageBytes) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("the model file has {}; the format ends at 2 GiB", human_bytes(bytes)))
      .hint("save the model with external data: its weights in a file beside it");
}

void check_parsed(bool parsed) {
  if (parsed) return;
  throw Error(ErrorCode::kBadInput, "the file is not an ONNX model, or it is damaged or cut short")
      .hint("compare its size and checksum with the original");
}

// From here on the elements of inline initializers live in `tensors`.
void take_tensors(OnnxModel::Impl& impl) {
  pb::GraphProto& graph = *impl.proto.mutable_graph();
  impl.tensors.resize(static_cast<std::size_t>(graph.initializer_size()));
  for (int i = 0; i < graph.initializer_size(); ++i) {
    pb::TensorProto& proto = *graph.mutable_initializer(i);
    impl.initializer_index.emplace(impl.facts.initializers[static_cast<std::size_t>(i)].name, i);
    if (proto.data_location() == pb::TensorProto::EXTERNAL) continue;
    impl.tensors[static_cast<std::size_t>(i)] =
        std::make_shared<const Tensor>(read_tensor(proto, proto.name(), impl.files));
    clear_elements(proto);
  }
}

std::unique_ptr<OnnxModel::Impl> finish(std::unique_ptr<OnnxModel::Impl> impl) {
  impl->facts = validate_model(impl->proto, impl->files);
  take_tensors(*impl);
  if (!has_stage_metadata(impl->proto)) restore_initializers(*impl);
  for (const pb::FunctionProto& function : impl->proto.functions()) {
    std::pair<std::string_view, std::string_view> key(plain_domain(function.domain()),
                                                      function.name());
    impl->functions.emplace(key, &function);
  }
  return impl;
}

}  // namespace

SharedTensor OnnxModel::Impl::tensor(int index) const {
  std::lock_guard lock(mutex);
  SharedTensor& found = tensors[static_cast<std::size_t>(index)];
  if (!found) {
    const pb::TensorProto& header = proto.graph().initializer(index);
    std::string what = fmt::format("initializer '{}'", printable(header.name()));
    found = std::make_shared<const Tensor>(read_tensor(header, what, files));
  }
  return found;
}

OnnxModel OnnxModel::read(const std::filesystem::path& path) {
  return read(MappedFile::open(path));
}

OnnxModel OnnxModel::read(const MappedFile& file) {
  const std::filesystem::path& path = file.path();
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  std::filesystem::path folder = path.parent_path();
  impl->files = ExternalFiles(folder.empty() ? "." : folder);
  try {
    check_size(file.size_bytes());
    HashedFile stream(file);
    google::protobuf::io::CopyingInputStreamAdaptor input(&stream, 1 << 20);
    const google::protobuf::LogSilencer quiet;  // what is wrong is said once, by us
    bool parsed = impl->proto.ParseFromZeroCopyStream(&input);
    stream.rethrow();
    check_parsed(parsed);
    impl->hash = stream.hash();
    return OnnxModel(finish(std::move(impl)));
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
}

OnnxModel OnnxModel::from_bytes(std::span<const std::byte> bytes,
                                const std::filesystem::path& folder) {
  return parsed(bytes, ExternalFiles(folder));
}

OnnxModel OnnxModel::shapes_from_bytes(std::span<const std::byte> bytes) {
  return parsed(bytes, ExternalFiles::unread());
}

OnnxModel OnnxModel::parsed(std::span<const std::byte> bytes, ExternalFiles files) {
  auto impl = std::make_unique<Impl>();
  impl->files = std::move(files);
  check_size(bytes.size());
  const google::protobuf::LogSilencer quiet;
  check_parsed(impl->proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  impl->hash = hash_bytes(bytes);
  return OnnxModel(finish(std::move(impl)));
}

OnnxModel OnnxModel::parse_text(const std::string& text) {
  auto impl = std::make_unique<Impl>();
  auto status = pb::OnnxParser(text.c_str()).Parse(impl->proto);
  require(status.IsOK(), ErrorCode::kBadInput, "the model text cannot be parsed: {}",
          status.ErrorMessage());
  impl->hash = hash_text(text);
  return OnnxModel(finish(std::move(impl)));
}

const std::filesystem::path& OnnxModel::path() const { return impl_->path; }
std::string OnnxModel::name() const { return impl_->proto.graph().name(); }
std::int64_t OnnxModel::ir_version() const { return impl_->proto.ir_version(); }
const std::vector<ModelTensor>& OnnxModel::inputs() const { return impl_->facts.inputs; }
const std::vector<ModelTensor>& OnnxModel::outputs() const { return impl_->facts.outputs; }
const std::vector<ModelInitializer>& OnnxModel::initializers() const {
  return impl_->facts.initializers;
}
std::vector<std::string> OnnxModel::declared_inputs() const {
  std::vector<std::string> names;
  for (const pb::ValueInfoProto& input : impl_->proto.graph().input()) {
    names.push_back(input.name());
  }
  return names;
}

std::uint64_t OnnxModel::hash() const { return impl_->hash; }
bool OnnxModel::is_stage() const { return has_stage_metadata(impl_->proto); }

std::string OnnxModel::producer() const {
  const pb::ModelProto& proto = impl_->proto;
  return std::string(trim(proto.producer_name() + " " + proto.producer_version()));
}

int OnnxModel::opset() const {
  auto found = impl_->facts.opsets.find(kOnnxDomain);
  return found == impl_->facts.opsets.end() ? 0 : found->second;
}

std::size_t OnnxModel::node_count() const {
  return static_cast<std::size_t>(impl_->proto.graph().node_size());
}

std::map<std::string, std::size_t> OnnxModel::op_counts() const {
  std::map<std::string, std::size_t> counts;
  for (const pb::NodeProto& node : impl_->proto.graph().node()) {
    std::string_view domain = plain_domain(node.domain());
    ++counts[domain.empty() ? node.op_type() : fmt::format("{}.{}", domain, node.op_type())];
  }
  return counts;
}

SharedTensor OnnxModel::initializer(std::string_view name) const {
  auto found = impl_->initializer_index.find(name);
  require(found != impl_->initializer_index.end(), ErrorCode::kBadInput,
          "the model has no initializer '{}'", printable(name));
  return impl_->tensor(found->second);
}

}  // namespace trainscope
