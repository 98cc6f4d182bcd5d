// Safetensors files: checked reading, atomic writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/tensor.h"

namespace trainscope {

// A tensor of the file as its header lists it.
struct SafetensorsEntry {
  std::string name;
  std::string stored_dtype;  // "F32", "BF16": the file's own word
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t begin_bytes = 0;  // from the beginning of the file
  std::uint64_t end_bytes = 0;
};

// Elements are read as they are stored: of every type that dtypes.def has a name of this format
// for.
class SafetensorsFile {
 public:
  // kIo when it cannot be read; kBadInput when any rule of the format is broken: header at most
  // 100 MB, tensors without holes, overlap or trailing bytes, sizes that match shape and type.
  static SafetensorsFile open(const std::filesystem::path& path) {
    return open(MappedFile::open(path));
  }
  static SafetensorsFile open(MappedFile mapped);

  // In the order of the header.
  std::span<const SafetensorsEntry> entries() const { return entries_; }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return index_.contains(name); }
  // These throw kBadInput, naming the tensor, when it is absent (with the nearest name as hint).
  const SafetensorsEntry& entry(std::string_view name) const;
  TensorType type(std::string_view name) const;
  Tensor tensor(std::string_view name) const;
  // As stored, mapped and not always aligned: copy before use as numbers.
  std::span<const std::byte> bytes(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return file_.path(); }
  // hash_bytes of the whole file: what write_safetensors returned for it.
  std::uint64_t content_hash() const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  void read_entries();

  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written: its elements lie in the host's memory, or `read` copies those bytes of
// them from elsewhere that begin at `offset`.
struct NamedTensor {
  std::string_view name;
  TensorView tensor;
  std::function<void(std::uint64_t offset, std::span<std::byte> bytes)> read = {};
};

struct WrittenSafetensors {
  std::uint64_t size_bytes = 0;
  std::uint64_t content_hash = 0;
};

// Writes atomically. The same arguments give the same bytes: data by element size, widest first so
// that each tensor is aligned, then in the order given. Names must be distinct UTF-8.
WrittenSafetensors write_safetensors(const std::filesystem::path& path,
                                     std::span<const NamedTensor> tensors,
                                     const std::map<std::string, std::string>& metadata = {});
WrittenSafetensors write_safetensors(const FolderEntry& entry, std::span<const NamedTensor> tensors,
                                     const std::map<std::string, std::string>& metadata = {},
                                     const FileCalls& calls = system_calls());

}  // namespace trainscope
