// TensorProto to Tensor and back: checked types, byte counts and external data.
#include "engine/onnx/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// No machine has more; keeps sums of sizes far from overflow.
constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 46;

constexpr std::array<std::string_view, 27> kTypeNames = {
    "undefined",      "float32",  "uint8",        "int8",           "uint16",
    "int16",          "int32",    "int64",        "string",         "bool",
    "float16",        "float64",  "uint32",       "uint64",         "complex64",
    "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
    "uint2",          "int2"};

// Where the elements of a tensor lie in another file.
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

std::uint64_t external_number(std::string_view key, std::string_view text, std::string_view what) {
  std::optional<std::int64_t> number = parse_int(text);
  require(number.has_value() && *number >= 0, ErrorCode::kBadInput,
          "{}: external data has {} '{}', a number from 0 on was expected", what, key,
          printable(text));
  return static_cast<std::uint64_t>(*number);
}

ExternalPlace external_place(const pb::TensorProto& proto, std::string_view what) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : proto.external_data()) {
    bool fresh = entries.emplace(entry.key(), entry.value()).second;
    require(fresh, ErrorCode::kBadInput, "{}: external data names '{}' twice", what,
            printable(entry.key()));
  }
  require(entries.contains("location"), ErrorCode::kBadInput, "{}: external data has no location",
          what);
  ExternalPlace place{.location = entries["location"], .offset = 0, .length = {}};
  if (entries.contains("offset")) {
    place.offset = external_number("offset", entries["offset"], what);
  }
  if (entries.contains("length")) {
    place.length = external_number("length", entries["length"], what);
  }
  return place;
}

void check_external(const pb::TensorProto& proto, std::uint64_t bytes, std::string_view what,
                    ExternalFiles& files) {
  ExternalPlace place = external_place(proto, what);
  if (place.length) {
    require(*place.length == bytes, ErrorCode::kBadInput,
            "{}: external data has length {}, its shape and type need {} bytes", what,
            *place.length, bytes);
  }
  if (files.is_unread()) return;
  std::uint64_t size = 0;
  try {
    size = files.open(place.location).size_bytes();
  } catch (Error& error) {
    error.at(std::string(what));
    throw;
  }
  bool inside = place.offset <= size && bytes <= size - place.offset;
  require(inside, ErrorCode::kBadInput,
          "{}: external data at offset {} with {} bytes lies beyond the end of '{}' ({} bytes)",
          what, place.offset, bytes, printable(place.location), size);
}

// Elements in each of the fields that can hold them.
struct FieldCounts {
  std::string_view name;
  int count;
};

std::array<FieldCounts, 6> field_counts(const pb::TensorProto& proto) {
  return {{{"float_data", proto.float_data_size()},
           {"int32_data", proto.int32_data_size()},
           {"int64_data", proto.int64_data_size()},
           {"double_data", proto.double_data_size()},
           {"uint64_data", proto.uint64_data_size()},
           {"string_data", proto.string_data_size()}}};
}

std::string_view typed_field(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float_data";
    case DType::kF64:
      return "double_data";
    case DType::kI32:
    case DType::kBool:
    case DType::kBF16:
    case DType::kF16:
      return "int32_data";
    case DType::kI64:
      return "int64_data";
  }
  return "";
}

// Exactly one field holds elements: external_data, raw_data, or the one of the tensor's type.
void check_fields(const pb::TensorProto& proto, const TensorType& type, std::string_view what) {
  bool external = proto.data_location() == pb::TensorProto::EXTERNAL;
  bool raw = proto.has_raw_data();
  require(!external || !raw, ErrorCode::kBadInput, "{}: has both raw_data and external data", what);
  for (const FieldCounts& field : field_counts(proto)) {
    if (field.count == 0) continue;
    require(!raw && !external, ErrorCode::kBadInput, "{}: has both {} and {}", what, field.name,
            raw ? "raw_data" : "external data");
    require(field.name == typed_field(type.dtype), ErrorCode::kBadInput,
            "{}: is {}, but its elements are in {}", what, type_text(type), field.name);
    require(field.count == type.elements(), ErrorCode::kBadInput,
            "{}: is {} with {} elements, but {} holds {}", what, type_text(type), type.elements(),
            field.name, field.count);
  }
}

template <typename Field>
Tensor copy_field(const TensorType& type, const Field& field) {
  Tensor tensor(type);
  auto copy = [&](auto into) {
    using T = typename decltype(into)::value_type;
    std::transform(field.begin(), field.end(), into.begin(), [](auto v) {
      if constexpr (std::is_same_v<T, bool>) {
        return v != 0;
      } else if constexpr (kIsStoredOnly<T>) {
        T number;  // int32_data holds its bits
        number.bits = static_cast<std::uint16_t>(v);
        return number;
      } else {
        return static_cast<T>(v);
      }
    });
  };
  switch (type.dtype) {
    case DType::kF32:
      copy(tensor.values<float>());
      break;
    case DType::kF64:
      copy(tensor.values<double>());
      break;
    case DType::kI32:
      copy(tensor.values<std::int32_t>());
      break;
    case DType::kI64:
      copy(tensor.values<std::int64_t>());
      break;
    case DType::kBool:
      copy(tensor.values<bool>());
      break;
    case DType::kBF16:
      copy(tensor.values<BFloat16>());
      break;
    case DType::kF16:
      copy(tensor.values<Float16>());
      break;
  }
  return tensor;
}

// Any byte but 0 is true: a bool in memory must be 0 or 1.
void normalize_bools(Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  for (std::byte& b : std::span(tensor.data(), tensor.bytes())) {
    b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
}

Tensor read_typed(const pb::TensorProto& proto, const TensorType& type) {
  switch (type.dtype) {
    case DType::kF32:
      return copy_field(type, proto.float_data());
    case DType::kF64:
      return copy_field(type, proto.double_data());
    case DType::kI64:
      return copy_field(type, proto.int64_data());
    case DType::kI32:
    case DType::kBool:
    case DType::kBF16:
    case DType::kF16:
      return copy_field(type, proto.int32_data());
  }
  return Tensor(type);
}

std::span<const std::int64_t> dims_of(const pb::TensorProto& proto) {
  return {proto.dims().data(), static_cast<std::size_t>(proto.dims_size())};
}

}  // namespace

const MappedFile& ExternalFiles::open(const std::string& location) {
  require(!unread_, ErrorCode::kBadInput, "the elements are not here: only shapes are known");
  auto found = files_.find(location);
  if (found != files_.end()) return found->second;
  require(!folder_.empty(), ErrorCode::kBadInput,
          "external data in '{}' cannot be found: the model was not read from a file",
          printable(location));
  return files_.emplace(location, open_inside(folder_, location)).first->second;
}

std::string onnx_type_name(int data_type) {
  auto index = static_cast<std::size_t>(data_type);
  if (data_type >= 0 && index < kTypeNames.size()) return std::string(kTypeNames[index]);
  return fmt::format("type {}", data_type);
}

int onnx_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return pb::TensorProto::FLOAT;
    case DType::kF64:
      return pb::TensorProto::DOUBLE;
    case DType::kI32:
      return pb::TensorProto::INT32;
    case DType::kI64:
      return pb::TensorProto::INT64;
    case DType::kBool:
      return pb::TensorProto::BOOL;
    case DType::kBF16:
      return pb::TensorProto::BFLOAT16;
    case DType::kF16:
      return pb::TensorProto::FLOAT16;
  }
  return pb::TensorProto::UNDEFINED;
}

DType dtype_of_onnx(int data_type, std::string_view what) {
  for (DType dtype : kAllDTypes) {
    if (onnx_type_of(dtype) == data_type) return dtype;
  }
  constexpr std::string_view kFormat =
      "{}: element type {} is not supported (float32, float64, bfloat16, float16, int32, int64 and "
      "bool are)";
  // Numbers without a name are no types of ONNX at all.
  bool known = data_type > 0 && static_cast<std::size_t>(data_type) < kTypeNames.size();
  if (known) fail_unsupported(kFormat, what, onnx_type_name(data_type));
  fail(ErrorCode::kBadInput, kFormat, what, onnx_type_name(data_type));
}

TensorType checked_type(DType dtype, std::span<const std::int64_t> dims, std::string_view what) {
  require_supported(dims.size() <= kMaxRank, "{}: has {} dimensions, at most {} are supported",
                    what, dims.size(), kMaxRank);
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (std::int64_t dim : dims) {
    require(dim >= 0, ErrorCode::kBadInput, "{}: has a negative dimension: {}", what,
            shape_text(dims));
    // A zero among the dimensions does not excuse the product of the others.
    bool overflow = __builtin_mul_overflow(bytes, std::max<std::int64_t>(dim, 1), &bytes);
    require(!overflow && bytes <= kMaxTensorBytes, ErrorCode::kBadInput, "{}: is too large: {}",
            what, shape_text(dims));
  }
  return {.dtype = dtype, .shape = Shape(dims)};
}

TensorType check_tensor(const pb::TensorProto& proto, std::string_view what, ExternalFiles& files) {
  DType dtype = dtype_of_onnx(proto.data_type(), what);
  TensorType type = checked_type(dtype, dims_of(proto), what);
  require_supported(!proto.has_segment(), "{}: tensors in segments are not supported", what);
  check_fields(proto, type, what);
  if (proto.data_location() == pb::TensorProto::EXTERNAL) {
    check_external(proto, type.bytes(), what, files);
  } else if (proto.has_raw_data()) {
    require(proto.raw_data().size() == type.bytes(), ErrorCode::kBadInput,
            "{}: is {} and needs {} bytes, but raw_data has {}", what, type_text(type),
            type.bytes(), proto.raw_data().size());
  } else {
    auto counts = field_counts(proto);
    bool filled = std::ranges::any_of(counts, [](const FieldCounts& f) { return f.count > 0; });
    require(filled || type.elements() == 0, ErrorCode::kBadInput, "{}: is {}, but has no data",
            what, type_text(type));
  }
  return type;
}

Tensor read_tensor(const pb::TensorProto& proto, std::string_view what, ExternalFiles& files) {
  TensorType type = checked_type(dtype_of_onnx(proto.data_type(), what), dims_of(proto), what);
  if (proto.data_location() == pb::TensorProto::EXTERNAL) {
    ExternalPlace place = external_place(proto, what);
    Tensor tensor(type);
    files.open(place.location).read(place.offset, std::span(tensor.data(), tensor.bytes()));
    normalize_bools(tensor);
    return tensor;
  }
  if (!proto.has_raw_data()) return read_typed(proto, type);
  Tensor tensor(type);
  CHECK_INVARIANT(proto.raw_data().size() == tensor.bytes());
  if (tensor.bytes() > 0) std::memcpy(tensor.data(), proto.raw_data().data(), tensor.bytes());
  normalize_bools(tensor);
  return tensor;
}

void clear_elements(pb::TensorProto& proto) {
  // Swapping frees the memory; clear_raw_data would keep the string's.
  pb::TensorProto emptied;
  emptied.set_name(proto.name());
  emptied.set_data_type(proto.data_type());
  emptied.set_doc_string(proto.doc_string());
  emptied.mutable_dims()->CopyFrom(proto.dims());
  proto.Swap(&emptied);
}

pb::TensorProto tensor_header(std::string_view name, const TensorType& type) {
  pb::TensorProto proto;
  proto.set_name(std::string(name));
  proto.set_data_type(onnx_type_of(type.dtype));
  for (std::int64_t dim : type.shape.span()) proto.add_dims(dim);
  return proto;
}

pb::TensorProto tensor_proto(std::string_view name, const Tensor& tensor) {
  pb::TensorProto proto = tensor_header(name, tensor.type());
  proto.set_raw_data(tensor.data(), tensor.bytes());
  return proto;
}

}  // namespace trainscope
