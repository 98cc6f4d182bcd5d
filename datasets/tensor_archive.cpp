// Tells the formats of tensor files apart.
#include "datasets/tensor_archive.h"

#include <algorithm>
#include <utility>

#include "datasets/npz.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

class SafetensorsArchive final : public TensorArchive {
 public:
  explicit SafetensorsArchive(const std::string& file) : file_(SafetensorsFile::open(file)) {}

  std::vector<std::string> names() const override { return file_.names(); }
  bool contains(std::string_view name) const override { return file_.contains(name); }
  TensorType type(std::string_view name) const override { return file_.type(name); }
  Tensor tensor(std::string_view name) const override { return file_.tensor(name); }
  std::uint64_t content_hash() const override { return file_.content_hash(); }

 private:
  SafetensorsFile file_;
};

}  // namespace

std::unique_ptr<TensorArchive> open_tensor_archive(const std::string& file) {
  MappedFile mapped = MappedFile::open(file);
  if (is_zip(mapped.bytes())) return open_npz(std::move(mapped));
  require(!file.ends_with(".npz"), ErrorCode::kBadInput,
          "'{}' is no npz file: it does not begin as a zip archive does", printable(file));
  return std::make_unique<SafetensorsArchive>(file);
}

}  // namespace trainscope
