// Reads a file of named tensors into a table.
#include "datasets/readers/tensors.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/readers/table.h"
#include "datasets/tensor_archive.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kLabelsName = "labels";

bool is_integer(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }

// The labels may have the name that the loss gives them, or the customary one.
std::string stored_name(const TensorArchive& file, const WantedField& wanted, bool is_label) {
  const bool use_customary = is_label && !file.contains(wanted.name) && file.contains(kLabelsName);
  return use_customary ? std::string(kLabelsName) : wanted.name;
}

bool dims_fit(const WantedField& wanted, const Shape& shape) {
  if (!wanted.dims) return true;
  const auto dims = shape.span().subspan(1);
  return std::ranges::equal(*wanted.dims, dims, [](std::int64_t want, std::int64_t have) {
    return want == WantedField::kAnySize || want == have;
  });
}

std::string wanted_text(const WantedField& wanted) {
  std::string text = "[N";
  for (const std::int64_t dim : *wanted.dims) {
    text += dim == WantedField::kAnySize ? ",?" : fmt::format(",{}", dim);
  }
  return text + "]";
}

bool kinds_fit(DType stored, DType wanted) {
  return stored == wanted || (is_integer(stored) && is_integer(wanted)) ||
         (is_float(stored) && is_float(wanted));
}

// What is wrong with a tensor of the file, or nothing.
std::string problem(const TensorArchive& file, const std::string& name, const WantedField& wanted) {
  if (!file.contains(name)) return fmt::format("'{}' is missing", printable(name));
  const TensorType type = file.type(name);
  if (type.shape.rank == 0 || !dims_fit(wanted, type.shape)) {
    return fmt::format("'{}' is {}, expected {}", printable(name), type_text(type),
                       wanted.dims ? wanted_text(wanted) : "one row for each example");
  }
  if (!kinds_fit(type.dtype, wanted.dtype)) {
    return fmt::format("'{}' is {}, the model takes {}", printable(name), type_text(type),
                       name_of(wanted.dtype));
  }
  return {};
}

// Throws instead of cutting off bits.
Tensor converted(Tensor tensor, const WantedField& wanted) {
  if (tensor.dtype() == wanted.dtype) return tensor;
  if (wanted.dtype == DType::kI32) {
    for (const std::int64_t value : tensor.values<std::int64_t>()) {
      require(std::in_range<std::int32_t>(value), ErrorCode::kBadInput,
              "'{}' holds {}, which does not fit the model's i32", printable(wanted.name), value);
    }
  }
  return convert(tensor, wanted.dtype);
}

struct Found {
  const WantedField* wanted = nullptr;
  std::string name;  // in the file
};

std::vector<Found> find_tensors(const DataSpec& spec, const TensorArchive& file,
                                const DatasetOptions& options) {
  std::vector<Found> found;
  for (const WantedField& input : options.inputs) found.push_back({&input, input.name});
  if (options.labels) {
    found.push_back({&*options.labels, stored_name(file, *options.labels, true)});
  }
  std::vector<std::string> problems;
  for (const auto& [wanted, name] : found) {
    std::string text = problem(file, name, *wanted);
    if (!text.empty()) problems.push_back(std::move(text));
  }
  if (problems.empty()) return found;
  std::vector<std::string> names;
  for (const std::string& name : file.names()) names.push_back(printable(name, 60));
  names.resize(std::min<std::size_t>(names.size(), 20));
  throw Error(ErrorCode::kBadInput, fmt::format("data '{}' does not fit the model: {}",
                                                printable(spec.text), join(problems, "; ")))
      .hint(fmt::format("the file has the tensors {}", join(names, ", ")));
}

}  // namespace

std::unique_ptr<Dataset> open_tensors(const DataSpec& spec, const DatasetOptions& options) {
  require(!options.inputs.empty() || options.labels, ErrorCode::kUsage,
          "data '{}': the model takes no data", printable(spec.text));
  const double fraction = spec.fraction("validation", options.validation_fraction);
  const std::unique_ptr<TensorArchive> archive = open_tensor_archive(spec.file());
  const TensorArchive& file = *archive;
  Table table{.inputs = {},
              .labels = {},
              .validation_fraction = fraction,
              .ignore_index = options.ignore_index,
              .description = {}};
  for (const auto& [wanted, name] : find_tensors(spec, file, options)) {
    Column column{.name = wanted->name,
                  .values = converted(file.tensor(name), *wanted),
                  .bound = wanted->bound};
    const bool is_label = options.labels && wanted == &*options.labels;
    if (is_label) {
      table.labels = std::move(column);
    } else {
      table.inputs.push_back(std::move(column));
    }
  }
  table.description = Json::object({{"kind", spec.format},
                                    {"file", spec.file()},
                                    {"xxh3", hash_hex(file.content_hash())},
                                    {"validation_fraction", fraction}});
  return make_table_dataset(spec, std::move(table));
}

DataFormat tensors_format() {
  return {.name = "tensors",
          .form = "tensors:FILE.safetensors|FILE.npz[,validation=FRACTION]",
          .open = open_tensors};
}

}  // namespace trainscope
