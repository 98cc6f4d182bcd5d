// NumPy's .npz files: zip archives of .npy arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "datasets/tensor_archive.h"
#include "datasets/zip.h"
#include "engine/core/file.h"
#include "engine/core/tensor.h"

namespace trainscope {

// What the header of an .npy array says.
struct NpyHeader {
  TensorType type;           // what it becomes
  std::string stored_dtype;  // NumPy's word without the byte order: "f4"
  std::size_t item_bytes = 0;
  std::size_t data_offset = 0;  // in the entry
};

// f4 f8 i4 i8 b1 are read as they are; i1 u1 i2 u2 u4 as i64. Little endian, C order, format
// versions 1.0, 2.0 and 3.0. `begin` are the first bytes of the array, `size_bytes` its length.
// Throws kBadInput, naming `name`.
NpyHeader parse_npy_header(std::string_view name, std::span<const std::byte> begin,
                           std::uint64_t size_bytes);

// The tensors are the archive's entries NAME.npy. Throws kBadInput.
std::unique_ptr<TensorArchive> open_npz(MappedFile file);

}  // namespace trainscope
