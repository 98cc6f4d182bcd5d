// Writing of safetensors files.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

void check(std::span<const NamedTensor> tensors,
           const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    require(is_valid_utf8(tensor.name), ErrorCode::kBadInput,
            "the tensor name '{}' is not UTF-8 and cannot be written to a safetensors file",
            printable(tensor.name));
    require(tensor.name != kMetadataKey, ErrorCode::kBadInput,
            "a tensor cannot have the name '{}': safetensors files use it for themselves",
            kMetadataKey);
    require(names.insert(tensor.name).second, ErrorCode::kBadInput,
            "two tensors have the name '{}': a safetensors file can hold one",
            printable(tensor.name));
    const DType dtype = tensor.tensor.type.dtype;
    require_supported(!row_of(dtype).safetensors_name.empty(),
                      "the tensor '{}' is {}: safetensors files have no such type",
                      printable(tensor.name), name_of(dtype));
    CHECK_INVARIANT(tensor.tensor.data != nullptr || tensor.read ||
                    tensor.tensor.type.bytes() == 0);
  }
  for (const auto& [key, value] : metadata) {
    require(is_valid_utf8(key) && is_valid_utf8(value), ErrorCode::kBadInput,
            "the metadata '{}' is not UTF-8", printable(key));
  }
}

// Widest elements first: with a header of a multiple of 8 bytes each tensor is aligned.
std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> order(tensors.begin(), tensors.end());
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return size_of(a.tensor.type.dtype) > size_of(b.tensor.type.dtype);
  });
  return order;
}

std::string header_text(std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  JsonObject header;
  if (!metadata.empty()) {
    Json words = Json::object();
    for (const auto& [key, value] : metadata) words.set(key, value);
    header.set(std::string(kMetadataKey), std::move(words));
  }
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const TensorType& type = tensor.tensor.type;
    const std::uint64_t end = offset + type.bytes();
    header.set(std::string(tensor.name),
               Json::object({{"dtype", row_of(type.dtype).safetensors_name},
                             {"shape", Json::list(type.shape.span())},
                             {"data_offsets", Json::array({offset, end})}}));
    offset = end;
  }
  std::string text = Json(std::move(header)).dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Calls f with the tensor's bytes, from the first to the last.
template <class F>
void for_each_piece(const NamedTensor& tensor, const F& f) {
  const std::size_t bytes = tensor.tensor.type.bytes();
  if (!tensor.read) return f({static_cast<const std::byte*>(tensor.tensor.data), bytes});
  std::vector<std::byte> piece(std::min(kPieceBytes, bytes));
  for (std::size_t offset = 0; offset < bytes; offset += piece.size()) {
    const std::span now(piece.data(), std::min(piece.size(), bytes - offset));
    tensor.read(offset, now);
    f(now);
  }
}

}  // namespace

WrittenSafetensors write_safetensors(const std::filesystem::path& path,
                                     std::span<const NamedTensor> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  return write_safetensors(entry_of(path), tensors, metadata);
}

WrittenSafetensors write_safetensors(const FolderEntry& entry, std::span<const NamedTensor> tensors,
                                     const std::map<std::string, std::string>& metadata,
                                     const FileCalls& calls) {
  check(tensors, metadata);
  const std::vector<NamedTensor> order = in_file_order(tensors);
  const std::string header = header_text(order, metadata);
  AtomicFile file(entry, calls);
  Hasher hasher;
  const auto write = [&](std::span<const std::byte> bytes) {
    hasher.bytes(bytes);
    file.write(bytes);
  };
  const std::uint64_t length = header.size();
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(header)));
  for (const NamedTensor& tensor : order) for_each_piece(tensor, write);
  file.commit();
  return {.size_bytes = file.written_bytes(), .content_hash = hasher.digest()};
}

}  // namespace trainscope
