// Rows of tensors in memory, checked once and then copied out.
#include "datasets/readers/table.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/core/batch_layout.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

Field field_of(const Column& column) {
  const TensorType type = column.type();
  return {.name = column.name,
          .example = {.dtype = type.dtype, .shape = Shape(type.shape.span().subspan(1))},
          .batch_axis = column.batch_axis};
}

// The first integer input with more than one number an example makes sequences.
std::int64_t tokens_per_example(const std::vector<Column>& inputs) {
  for (const Column& column : inputs) {
    const TensorType type = column.type();
    if (!is_index_type(type.dtype)) continue;
    return type.shape.rank > 1 ? field_of(column).example.elements() : 0;
  }
  return 0;
}

template <typename T>
std::int64_t count_labels(std::span<const T> labels, std::int64_t ignore_index) {
  return std::ranges::count_if(labels, [&](T label) { return label != ignore_index; });
}

// Which rows train is drawn; each split has them in the order of the data, those that train first.
std::vector<std::int64_t> split_rows(std::int64_t examples, std::int64_t training,
                                     std::uint64_t seed) {
  const Permutation permutation(seed, kSplitStream, examples);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < examples; ++i) rows.push_back(permutation(i));
  std::sort(rows.begin(), rows.begin() + training);
  std::sort(rows.begin() + training, rows.end());
  return rows;
}

class TableDataset final : public Dataset {
 public:
  explicit TableDataset(Table table) : table_(std::move(table)) {
    for (const Column& column : table_.inputs) columns_.push_back(&column);
    if (table_.labels) columns_.push_back(&*table_.labels);
    for (const Column* column : columns_) fields_.push_back(field_of(*column));
    tokens_per_example_ = tokens_per_example(table_.inputs);
    const std::int64_t examples = columns_.front()->type().shape[0];
    training_ = training_examples(examples, table_.validation_fraction);
    validation_ = examples - training_;
    if (table_.validation_seed) rows_ = split_rows(examples, training_, *table_.validation_seed);
  }
  TableDataset(const TableDataset&) = delete;  // columns_ looks into table_
  TableDataset& operator=(const TableDataset&) = delete;

  std::span<const Field> fields() const override { return fields_; }
  Json description() const override { return table_.description; }
  std::int64_t examples(Split split) const override {
    return split == Split::kTrain ? training_ : validation_;
  }
  bool can_pad() const override {
    return table_.labels && is_index_type(table_.labels->values.dtype());
  }

  void read(Split split, std::int64_t, std::span<const std::int64_t> indices,
            Batch& out) const override {
    prepare_batch(fields_, static_cast<std::int64_t>(indices.size()), out);
    out.examples = std::ranges::count_if(indices, [](auto i) { return i != kPaddingExample; });
    out.tokens = out.examples * tokens_per_example_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      copy_rows(split, indices, *columns_[i], out.tensors[i].second);
    }
    if (out.examples != static_cast<std::int64_t>(indices.size())) ignore_padding(indices, out);
    out.loss_terms = count_terms(out);
  }

 private:
  // Where an example of a split is in the columns.
  std::int64_t row_of(Split split, std::int64_t index) const {
    CHECK_INVARIANT(index >= 0 && index < examples(split));
    const std::int64_t row = split == Split::kTrain ? index : training_ + index;
    return rows_.empty() ? row : rows_[static_cast<std::size_t>(row)];
  }

  void copy_rows(Split split, std::span<const std::int64_t> indices, const Column& column,
                 Tensor& into) const {
    const BatchLayout layout(into.type(), column.batch_axis);
    std::vector<std::byte> read(column.rows ? layout.row_bytes() : 0);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto example = static_cast<std::int64_t>(i);
      if (indices[i] == kPaddingExample) {
        layout.clear_row(example, into.data());
        continue;
      }
      const std::int64_t row = row_of(split, indices[i]);
      if (column.rows) column.rows->read(row, read);
      const std::byte* from =
          column.rows ? read.data()
                      : column.values.data() + static_cast<std::size_t>(row) * layout.row_bytes();
      layout.write_row(from, example, into.data());
    }
  }

  void ignore_padding(std::span<const std::int64_t> indices, Batch& out) const {
    CHECK_INVARIANT(can_pad());
    Tensor& labels = out.tensors.back().second;
    if (labels.dtype() == DType::kI64) {
      ignore_padding(indices, labels, labels.values<std::int64_t>());
    } else {
      ignore_padding(indices, labels, labels.values<std::int32_t>());
    }
  }

  template <typename T>
  void ignore_padding(std::span<const std::int64_t> indices, const Tensor& labels,
                      std::span<T> values) const {
    const BatchLayout layout(labels.type(), table_.labels->batch_axis);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != kPaddingExample) continue;
      for (std::int64_t piece = 0; piece < layout.pieces(); ++piece) {
        const auto first =
            static_cast<std::size_t>(layout.place(static_cast<std::int64_t>(i), piece));
        const auto length = static_cast<std::size_t>(layout.piece_elements());
        std::ranges::fill(values.subspan(first, length), static_cast<T>(table_.ignore_index));
      }
    }
  }

  std::int64_t count_terms(const Batch& batch) const {
    if (!table_.labels) return batch.examples;
    const Tensor& labels = batch.tensors.back().second;
    if (labels.dtype() == DType::kI64) {
      return count_labels(labels.values<std::int64_t>(), table_.ignore_index);
    }
    if (labels.dtype() == DType::kI32) {
      return count_labels(labels.values<std::int32_t>(), table_.ignore_index);
    }
    return labels.elements();
  }

  Table table_;
  std::vector<const Column*> columns_;
  std::vector<Field> fields_;
  std::int64_t tokens_per_example_ = 0;
  std::int64_t training_ = 0;
  std::int64_t validation_ = 0;
  std::vector<std::int64_t> rows_;  // of both splits, with a seed; empty: as they are
};

// "[3,17]" for a position in a tensor.
std::string index_text(const Shape& shape, std::int64_t position) {
  Shape index = shape;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return shape_text(index);
}

// What the values of a column may be.
struct Allowed {
  std::int64_t bound = 0;
  std::optional<std::int64_t> also;
};

template <typename T>
void check_values(const DataSpec& spec, const Column& column, Allowed allowed) {
  const std::span<const T> values = column.values.values<T>();
  const auto wrong = std::ranges::find_if(values, [&](T value) {
    const std::int64_t wide = value;
    return (wide < 0 || wide >= allowed.bound) && wide != allowed.also;
  });
  if (wrong == values.end()) return;
  const std::string also = allowed.also ? fmt::format(" or {}", *allowed.also) : "";
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("data '{}': '{}'{} is {}: expected 0 to {}{}", printable(spec.text),
                  printable(column.name), index_text(column.values.shape(), wrong - values.begin()),
                  *wrong, allowed.bound - 1, also))
      .hint(allowed.also
                ? fmt::format("number the classes from 0; the model's scores are of {}. Labels "
                              "that are not to count are the loss's ignore_index, {}",
                              allowed.bound, *allowed.also)
                : fmt::format("these numbers name rows of a table of the model, which has {}",
                              allowed.bound));
}

void check_column(const DataSpec& spec, const Column& column, Allowed allowed) {
  if (allowed.bound == 0 || column.rows) return;
  if (column.values.dtype() == DType::kI64)
    return check_values<std::int64_t>(spec, column, allowed);
  if (column.values.dtype() == DType::kI32)
    return check_values<std::int32_t>(spec, column, allowed);
  if (!is_integer_type(column.values.dtype())) return;
  const Column wide{
      .name = column.name, .values = convert(column.values, DType::kI64), .bound = column.bound};
  check_values<std::int64_t>(spec, wide, allowed);
}

void check_count(const DataSpec& spec, const Column& column, const ExampleCount& expected) {
  const TensorType type = column.type();
  const Shape& shape = type.shape;
  require(shape.rank > 0 && shape[0] > 0, ErrorCode::kBadInput,
          "data '{}': '{}' is {}: its first dimension must count at least one example",
          printable(spec.text), printable(column.name), type_text(type));
  check_same_count(spec, {.examples = shape[0], .name = column.name}, expected);
}

void check_table(const DataSpec& spec, const Table& table) {
  const Column& first = table.inputs.empty() ? *table.labels : table.inputs.front();
  const Shape shape = first.type().shape;
  const ExampleCount expected{.examples = shape.rank > 0 ? shape[0] : 0, .name = first.name};
  for (const Column& column : table.inputs) {
    check_count(spec, column, expected);
    check_column(spec, column, {.bound = column.bound, .also = column.ignored});
  }
  if (!table.labels) return;
  check_count(spec, *table.labels, expected);
  check_column(spec, *table.labels, {.bound = table.labels->bound, .also = table.ignore_index});
}

}  // namespace

void check_same_count(const DataSpec& spec, const ExampleCount& found,
                      const ExampleCount& expected) {
  if (found.examples == expected.examples) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("data '{}': '{}' has {} examples, '{}' has {}", printable(spec.text),
                          printable(found.name), found.examples, printable(expected.name),
                          expected.examples))
      .hint(fmt::format("where another dimension than the first counts the examples: --batch-axis "
                        "{}=1",
                        printable(expected.name)));
}

void set_split(const DataSpec& spec, const DatasetOptions& options, Table& table) {
  const double asked = spec.fraction("validation", options.validation_fraction);
  // Without labels there is nothing to train: all are one split, in their order.
  table.validation_fraction = options.without_labels ? 1.0 : asked;
  table.validation_seed = options.validation_seed;
  table.description.set("validation_fraction", table.validation_fraction);
  if (table.validation_seed) table.description.set("validation_seed", *table.validation_seed);
}

std::vector<std::int64_t> training_rows(const Table& table, std::int64_t examples) {
  const std::int64_t training = training_examples(examples, table.validation_fraction);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(examples));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  if (table.validation_seed) rows = split_rows(examples, training, *table.validation_seed);
  rows.resize(static_cast<std::size_t>(training));
  return rows;
}

Tensor narrowed(const Tensor& integers, DType to, std::string_view name) {
  const Tensor wide = convert(integers, DType::kI64);
  Tensor result = convert(wide, to);
  const Tensor back = convert(result, DType::kI64);
  const auto given = wide.values<std::int64_t>();
  const bool without_sign = integers.dtype() == DType::kU64 || to == DType::kU64;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool fits =
        given[i] == back.values<std::int64_t>()[i] && (given[i] >= 0 || !without_sign);
    const auto number = static_cast<std::uint64_t>(given[i]);
    const bool huge = integers.dtype() == DType::kU64;
    require(fits, ErrorCode::kBadInput, "'{}' holds {}{}, which does not fit the model's {}",
            printable(name), huge || given[i] >= 0 ? "" : "-",
            huge || given[i] >= 0 ? number : 0 - number, name_of(to));
  }
  return result;
}

std::unique_ptr<Dataset> make_table_dataset(const DataSpec& spec, Table table) {
  CHECK_INVARIANT(!table.inputs.empty() || table.labels);
  check_table(spec, table);
  return std::make_unique<TableDataset>(std::move(table));
}

}  // namespace trainscope
