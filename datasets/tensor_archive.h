// Files of named tensors, whatever their format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"

namespace trainscope {

class TensorArchive {
 public:
  virtual ~TensorArchive() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  // Throw kBadInput, naming the tensor, when it is of a type that cannot be read or damaged.
  virtual TensorType type(std::string_view name) const = 0;
  virtual Tensor tensor(std::string_view name) const = 0;
  // XXH3 of the whole file.
  virtual std::uint64_t content_hash() const = 0;
};

// A safetensors file, or a .npz file of NumPy, told by its first bytes. Throws kIo or kBadInput.
std::unique_ptr<TensorArchive> open_tensor_archive(const std::string& file);

}  // namespace trainscope
