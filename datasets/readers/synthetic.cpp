// Fills a table with random numbers.
#include "datasets/readers/synthetic.h"

#include <string>
#include <utility>

#include "datasets/format.h"
#include "datasets/readers/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::int64_t kDefaultExamples = 512;
constexpr std::uint64_t kMaxBytes = std::uint64_t{8} << 30;

// Where a field's numbers come from.
struct Source {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t bound = 2;  // of integers
};

template <typename T>
void fill(std::span<T> values, const Source& source) {
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if constexpr (is_float(kDTypeOf<T>)) {
      values[i] = static_cast<T>(random_normal(source.seed, source.stream, i));
    } else {
      values[i] = static_cast<T>(random_below(source.seed, source.stream, i, source.bound));
    }
  }
}

void fill(Tensor& tensor, const Source& source) {
  switch (tensor.dtype()) {
    case DType::kF32:
      return fill(tensor.values<float>(), source);
    case DType::kF64:
      return fill(tensor.values<double>(), source);
    case DType::kI32:
      return fill(tensor.values<std::int32_t>(), source);
    case DType::kI64:
      return fill(tensor.values<std::int64_t>(), source);
    case DType::kBool:
      return fill(tensor.values<bool>(), source);
    case DType::kBF16:
      return fill(tensor.values<BFloat16>(), source);
    case DType::kF16:
      return fill(tensor.values<Float16>(), source);
    default: {
      Tensor wide({.dtype = DType::kI64, .shape = tensor.shape()});
      fill(wide.values<std::int64_t>(), source);
      tensor = convert(wide, tensor.dtype());
    }
  }
}

TensorType type_of(const DataSpec& spec, const WantedField& wanted, std::int64_t examples,
                   std::int64_t sequence) {
  require(wanted.dims.has_value(), ErrorCode::kUsage,
          "data '{}': the shape of '{}' is not known, so it cannot be made up",
          printable(spec.text), printable(wanted.name));
  TensorType type{.dtype = wanted.dtype, .shape = {examples}};
  CHECK_INVARIANT(wanted.dims->size() < kMaxRank);
  for (const std::int64_t dim : *wanted.dims) {
    if (dim == WantedField::kAnySize && sequence <= 0) {
      throw Error(ErrorCode::kUsage, fmt::format("data '{}': a dimension of '{}' is left open",
                                                 printable(spec.text), printable(wanted.name)))
          .hint("give it with --seq N");
    }
    type.shape.push_back(dim == WantedField::kAnySize ? sequence : dim);
  }
  return type;
}

void check_size(const DataSpec& spec, const TensorType& type) {
  std::uint64_t bytes = size_of(type.dtype);
  for (const std::int64_t dim : type.shape.span()) {
    const bool overflow = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes);
    if (overflow || bytes > kMaxBytes) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("data '{}': {} is more than {}", printable(spec.text),
                              type_text(type), human_bytes(kMaxBytes)))
          .hint("ask for fewer examples");
    }
  }
}

}  // namespace

std::unique_ptr<Dataset> make_synthetic(const DataSpec& spec, const DatasetOptions& options) {
  require(!options.inputs.empty() || options.labels, ErrorCode::kUsage,
          "data '{}': the model takes no data", printable(spec.text));
  const std::int64_t examples = spec.integer("examples", kDefaultExamples, 1);
  Table table{.inputs = {}, .labels = {}, .ignore_index = options.ignore_index, .description = {}};
  Source source{.seed = options.seed, .stream = kSyntheticStreams, .bound = 2};
  const auto make = [&](const WantedField& wanted, std::int64_t bound) -> Column {
    const TensorType type = type_of(spec, wanted, examples, options.sequence);
    check_size(spec, type);
    if (bound > 0) source.bound = static_cast<std::uint64_t>(bound);
    Column column{.name = wanted.name,
                  .values = Tensor(type),
                  .bound = wanted.bound,
                  .batch_axis = wanted.batch_axis};
    fill(column.values, source);
    source = {.seed = options.seed, .stream = source.stream + 1, .bound = 2};
    return column;
  };
  table.description = Json::object({{"kind", spec.format}, {"examples", examples}});
  set_split(spec, options, table);
  for (const WantedField& input : options.inputs) table.inputs.push_back(make(input, input.bound));
  if (options.labels) {
    const std::int64_t bound = options.labels->bound;
    const std::int64_t classes = spec.integer("classes", bound, 1);
    require(bound == 0 || classes <= bound, ErrorCode::kUsage,
            "data '{}': {} classes, but the model knows {}", printable(spec.text), classes, bound);
    table.labels = make(*options.labels, classes);
    if (classes > 0) table.description.set("classes", classes);  // other labels are other data
  }
  return make_table_dataset(spec, std::move(table));
}

DataFormat synthetic_format() {
  return {.name = "synthetic",
          .form = "synthetic[,examples=N,classes=K,validation=FRACTION]",
          .files = 0,
          .options = {"examples", "classes", "validation"},
          .open = make_synthetic};
}

}  // namespace trainscope
