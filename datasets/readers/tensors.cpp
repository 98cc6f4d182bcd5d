// Reads a file of named tensors into a table.
#include "datasets/readers/tensors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/readers/table.h"
#include "datasets/tensor_archive.h"
#include "engine/core/batch_layout.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kLabelsName = "labels";

using Dims = std::vector<std::int64_t>;

// The labels may have the name that the loss gives them, or the customary one.
std::string stored_name(const TensorArchive& file, const WantedField& wanted, bool is_label) {
  const bool use_customary = is_label && !file.contains(wanted.name) && file.contains(kLabelsName);
  return use_customary ? std::string(kLabelsName) : wanted.name;
}

// The dimensions of one example: without the axis that counts them.
Dims example_dims(const WantedField& wanted, const Shape& shape) {
  Dims dims;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (axis != wanted.batch_axis) dims.push_back(shape[axis]);
  }
  return dims;
}

bool dims_match(const Dims& wanted, const Dims& have) {
  return std::ranges::equal(wanted, have, [](std::int64_t want, std::int64_t is) {
    return want == WantedField::kAnySize || want == is;
  });
}

// Labels [N] serve an output [N, 1], and the other way round.
bool dims_fit(const WantedField& wanted, const Shape& shape, bool is_label) {
  if (!wanted.dims) return true;
  Dims want = *wanted.dims;
  Dims have = example_dims(wanted, shape);
  if (dims_match(want, have)) return true;
  if (!is_label) return false;
  std::erase(want, 1);
  std::erase(have, 1);
  return dims_match(want, have);
}

std::string wanted_text(const WantedField& wanted) {
  std::vector<std::string> texts;
  for (const std::int64_t dim : *wanted.dims) {
    texts.push_back(dim == WantedField::kAnySize ? "?" : fmt::format("{}", dim));
  }
  texts.insert(texts.begin() + wanted.batch_axis, "N");
  return fmt::format("[{}]", join(texts, ","));
}

// Labels may be whole numbers in floats, or integers that a loss compares with floats.
bool kinds_fit(DType stored, DType wanted, bool is_label) {
  if (stored == wanted || (is_integer_type(stored) && is_integer_type(wanted)) ||
      (is_float(stored) && is_float(wanted))) {
    return true;
  }
  const bool numbers = stored != DType::kBool && wanted != DType::kBool;
  return is_label && (numbers || is_float(wanted));
}

struct Found {
  const WantedField* wanted = nullptr;
  std::string name;  // in the file
  bool is_label = false;
};

// What is wrong with a tensor of the file, or nothing; with what to do about it where that is
// known.
struct Problem {
  std::string text;
  std::string hint = {};
};

std::string hint_of_kind(const TensorType& stored, const WantedField& wanted) {
  if (is_float(stored.dtype) && is_integer_type(wanted.dtype)) {
    return fmt::format(
        "write '{}' as {}, whole numbers, or export the model with an input of floats",
        printable(wanted.name), name_of(wanted.dtype));
  }
  return fmt::format("write '{}' as {}", printable(wanted.name), name_of(wanted.dtype));
}

Problem problem(const TensorArchive& file, const Found& found) {
  const auto& [wanted, name, is_label] = found;
  if (!file.contains(name)) return {fmt::format("'{}' is missing", printable(name))};
  const TensorType type = file.type(name);
  if (type.shape.rank <= wanted->batch_axis || !dims_fit(*wanted, type.shape, is_label)) {
    return {fmt::format("'{}' is {}, expected {}", printable(name), type_text(type),
                        wanted->dims ? wanted_text(*wanted) : "one row for each example")};
  }
  if (!kinds_fit(type.dtype, wanted->dtype, is_label)) {
    return {fmt::format("'{}' is {}, the model takes {}", printable(name), type_text(type),
                        name_of(wanted->dtype)),
            hint_of_kind(type, *wanted)};
  }
  return {};
}

// Labels that name classes, given as floats.
Tensor whole_numbers(const DataSpec& spec, const Tensor& tensor, const WantedField& wanted) {
  const Tensor floats = convert(tensor, DType::kF64);
  Tensor whole({.dtype = DType::kI64, .shape = tensor.shape()});
  const std::span<std::int64_t> to = whole.values<std::int64_t>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double value = floats.values<double>()[i];
    constexpr double kMost = 9007199254740992.0;  // 2^53
    if (std::abs(value) > kMost || std::floor(value) != value) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("data '{}': '{}' holds {} at element {}: labels of this loss are "
                              "whole numbers",
                              printable(spec.text), printable(wanted.name), value, i))
          .hint(std::string(kNumberLossHint));
    }
    to[i] = static_cast<std::int64_t>(value);
  }
  return whole;
}

// Throws instead of cutting off bits.
Tensor converted(const DataSpec& spec, Tensor tensor, const WantedField& wanted) {
  if (tensor.dtype() == wanted.dtype) return tensor;
  if (is_integer_type(wanted.dtype) && is_float(tensor.dtype())) {
    tensor = whole_numbers(spec, tensor, wanted);
    if (tensor.dtype() == wanted.dtype) return tensor;
  }
  const bool integers = is_integer_type(tensor.dtype()) && is_integer_type(wanted.dtype);
  if (integers) return narrowed(tensor, wanted.dtype, wanted.name);
  return convert(tensor, wanted.dtype);
}

// With the batch axis first, and as many dimensions as the model has.
Tensor arranged(Tensor tensor, const WantedField& wanted) {
  const Shape shape = tensor.shape();
  const int axis = wanted.batch_axis;
  Dims dims = example_dims(wanted, shape);
  const bool open =
      !wanted.dims || std::ranges::find(*wanted.dims, WantedField::kAnySize) != wanted.dims->end();
  if (!open) dims = *wanted.dims;
  Shape to{shape[axis]};
  for (const std::int64_t dim : dims) to.push_back(dim);
  if (axis == 0) return std::move(tensor).reshaped(to);
  const BatchLayout layout(tensor.type(), axis);
  Tensor moved({.dtype = tensor.dtype(), .shape = to});
  for (std::int64_t i = 0; i < shape[axis]; ++i) {
    layout.read_row(tensor.data(), i,
                    moved.data() + static_cast<std::size_t>(i) * layout.row_bytes());
  }
  return moved;
}

// By what the file says of them: before memory is taken for one that is larger than the others.
void check_counts(const DataSpec& spec, const TensorArchive& file,
                  const std::vector<Found>& found) {
  const auto count_of = [&file](const Found& each) {
    return ExampleCount{.examples = file.type(each.name).shape[each.wanted->batch_axis],
                        .name = each.wanted->name};
  };
  for (const Found& each : found) check_same_count(spec, count_of(each), count_of(found.front()));
}

std::vector<Found> find_tensors(const DataSpec& spec, const TensorArchive& file,
                                const DatasetOptions& options) {
  std::vector<Found> found;
  for (const WantedField& input : options.inputs) found.push_back({&input, input.name, false});
  if (options.labels) {
    found.push_back({&*options.labels, stored_name(file, *options.labels, true), true});
  }
  std::vector<std::string> problems;
  std::string hint;
  for (const Found& each : found) {
    Problem one = problem(file, each);
    if (!one.text.empty()) problems.push_back(std::move(one.text));
    if (hint.empty()) hint = std::move(one.hint);
  }
  if (problems.empty()) {
    check_counts(spec, file, found);
    return found;
  }
  std::vector<std::string> names;
  for (const std::string& name : file.names()) names.push_back(printable(name, 60));
  names.resize(std::min<std::size_t>(names.size(), 20));
  throw Error(ErrorCode::kBadInput, fmt::format("data '{}' does not fit the model: {}",
                                                printable(spec.text), join(problems, "; ")))
      .hint(hint.empty() ? fmt::format("the file has the tensors {}", join(names, ", ")) : hint);
}

}  // namespace

std::unique_ptr<Dataset> open_tensors(const DataSpec& spec, const DatasetOptions& options) {
  require(!options.inputs.empty() || options.labels, ErrorCode::kUsage,
          "data '{}': the model takes no data", printable(spec.text));
  const std::unique_ptr<TensorArchive> archive = open_tensor_archive(spec.file());
  const TensorArchive& file = *archive;
  Table table{.inputs = {}, .labels = {}, .ignore_index = options.ignore_index, .description = {}};
  for (const auto& [wanted, name, is_label] : find_tensors(spec, file, options)) {
    Column column{.name = wanted->name,
                  .values = arranged(converted(spec, file.tensor(name), *wanted), *wanted),
                  .bound = wanted->bound,
                  .ignored = wanted->ignored,
                  .batch_axis = wanted->batch_axis};
    if (is_label) {
      table.labels = std::move(column);
    } else {
      table.inputs.push_back(std::move(column));
    }
  }
  table.description = Json::object(
      {{"kind", spec.format}, {"file", spec.file()}, {"xxh3", hash_hex(file.content_hash())}});
  set_split(spec, options, table);
  return make_table_dataset(spec, std::move(table));
}

DataFormat tensors_format() {
  return {.name = "tensors",
          .form = "tensors:FILE.safetensors|FILE.npz[,validation=FRACTION]",
          .endings = {".safetensors", ".npz"},
          .open = open_tensors};
}

}  // namespace trainscope
