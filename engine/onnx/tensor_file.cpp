// TensorProto to Tensor and back: checked types, byte counts and external data.
#include "engine/onnx/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

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
    case DType::kI64:
      return "int64_data";
    case DType::kU32:
    case DType::kU64:
      return "uint64_data";
    default:
      return "int32_data";
  }
}

bool is_packed(DType dtype) { return row_of(dtype).file_bits < 8; }

// Entries of the typed field: elements, or bytes that several are packed in.
std::int64_t field_entries(const TensorType& type) {
  return is_packed(type.dtype) ? static_cast<std::int64_t>(file_bytes(type)) : type.elements();
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
    require(field.count == field_entries(type), ErrorCode::kBadInput,
            "{}: is {} with {} elements, but {} holds {}", what, type_text(type),
            field_entries(type), field.name, field.count);
  }
}

// Calls f with the numbers of the field that the type is held in.
template <typename F>
void with_typed_field(const pb::TensorProto& proto, DType dtype, F f) {
  const std::string_view field = typed_field(dtype);
  if (field == "float_data") return f(proto.float_data());
  if (field == "double_data") return f(proto.double_data());
  if (field == "int64_data") return f(proto.int64_data());
  if (field == "uint64_data") return f(proto.uint64_data());
  f(proto.int32_data());
}

// The low bytes of each number, as the element type has them: int32_data holds the bits of bf16,
// f16 and the types of a byte and less.
template <typename Field>
void copy_field(const Field& field, std::size_t element_bytes, std::span<std::byte> to) {
  for (const auto number : field) {
    std::memcpy(to.data(), &number, element_bytes);
    to = to.subspan(element_bytes);
  }
}

// The first element in the low bits of the first byte.
void unpack(std::span<const std::byte> packed, Tensor& tensor) {
  const int bits = row_of(tensor.dtype()).file_bits;
  const auto in_byte = static_cast<std::size_t>(8 / bits);
  const unsigned mask = (1U << bits) - 1U;
  const bool negative = tensor.dtype() == DType::kI4 || tensor.dtype() == DType::kI2;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    const auto byte = std::to_integer<unsigned>(packed[i / in_byte]);
    unsigned element = (byte >> (i % in_byte * static_cast<unsigned>(bits))) & mask;
    if (negative && (element >> (bits - 1)) != 0) element |= 0xFFU & ~mask;
    tensor.data()[i] = static_cast<std::byte>(element);
  }
}

// Any byte but 0 is true: a bool in memory must be 0 or 1.
void normalize_bools(Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  for (std::byte& b : std::span(tensor.data(), tensor.bytes())) {
    b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
}

// The elements from what a file holds of them: its bytes, or those of the typed field.
Tensor from_file_bytes(const TensorType& type, std::span<const std::byte> bytes) {
  Tensor tensor(type);
  CHECK_INVARIANT(bytes.size() == file_bytes(type));
  if (is_packed(type.dtype)) {
    unpack(bytes, tensor);
  } else if (!bytes.empty()) {
    std::memcpy(tensor.data(), bytes.data(), bytes.size());
  }
  normalize_bools(tensor);
  return tensor;
}

Tensor read_typed(const pb::TensorProto& proto, const TensorType& type) {
  std::vector<std::byte> bytes(file_bytes(type));
  with_typed_field(proto, type.dtype,
                   [&](const auto& field) { copy_field(field, size_of(type.dtype), bytes); });
  return from_file_bytes(type, bytes);
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

int onnx_type_of(DType dtype) { return row_of(dtype).onnx_number; }

std::size_t file_bytes(const TensorType& type) {
  const auto bits = static_cast<std::size_t>(row_of(type.dtype).file_bits);
  if (bits >= 8) return type.bytes();
  const std::size_t in_byte = 8 / bits;
  return (static_cast<std::size_t>(type.elements()) + in_byte - 1) / in_byte;
}

bool is_packed(const Tensor& tensor) { return is_packed(tensor.dtype()); }

Tensor packed(const Tensor& tensor) {
  CHECK_INVARIANT(is_packed(tensor.dtype()));
  const auto bits = static_cast<unsigned>(row_of(tensor.dtype()).file_bits);
  const std::size_t in_byte = 8 / bits;
  const auto size = static_cast<std::int64_t>(file_bytes(tensor.type()));
  Tensor bytes({.dtype = DType::kU8, .shape = {size}});
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    const auto element = std::to_integer<unsigned>(tensor.data()[i]) & ((1U << bits) - 1U);
    bytes.data()[i / in_byte] |= static_cast<std::byte>(element << (i % in_byte * bits));
  }
  return bytes;
}

DType dtype_of_onnx(int data_type, std::string_view what) {
  for (DType dtype : kAllDTypes) {
    if (onnx_type_of(dtype) == data_type) return dtype;
  }
  constexpr std::string_view kFormat =
      "{}: element type {} is not supported (numbers and bool are, text and complex numbers are "
      "not)";
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
    check_external(proto, file_bytes(type), what, files);
  } else if (proto.has_raw_data()) {
    require(proto.raw_data().size() == file_bytes(type), ErrorCode::kBadInput,
            "{}: is {} and needs {} bytes, but raw_data has {}", what, type_text(type),
            file_bytes(type), proto.raw_data().size());
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
    const MappedFile& file = files.open(place.location);
    if (is_packed(type.dtype)) {
      std::vector<std::byte> bytes(file_bytes(type));
      file.read(place.offset, bytes);
      return from_file_bytes(type, bytes);
    }
    Tensor tensor(type);
    file.read(place.offset, std::span(tensor.data(), tensor.bytes()));
    normalize_bools(tensor);
    return tensor;
  }
  if (!proto.has_raw_data()) return read_typed(proto, type);
  return from_file_bytes(type, std::as_bytes(std::span(proto.raw_data())));
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

void set_raw_data(pb::TensorProto& proto, const Tensor& tensor) {
  if (is_packed(tensor)) return set_raw_data(proto, packed(tensor));
  proto.set_raw_data(tensor.data(), tensor.bytes());
}

pb::TensorProto tensor_proto(std::string_view name, const Tensor& tensor) {
  pb::TensorProto proto = tensor_header(name, tensor.type());
  set_raw_data(proto, tensor);
  return proto;
}

}  // namespace trainscope
