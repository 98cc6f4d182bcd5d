// Examples as rows of tensors in memory: what the readers of small fixed-size examples share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// Rows that are read when a batch needs them, where memory need not hold all. Called by several
// threads at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual TensorType type() const = 0;  // its first dimension counts the rows
  virtual void read(std::int64_t row, std::span<std::byte> into) const = 0;
};

// One tensor for all examples: its first dimension counts them, also where that of a batch does
// not.
struct Column {
  std::string name;
  Tensor values = {};
  std::shared_ptr<const RowSource> rows = nullptr;  // instead of values
  std::int64_t bound = 0;                           // as in WantedField
  std::optional<std::int64_t> ignored = {};         // as in WantedField
  int batch_axis = 0;                               // as in Field

  TensorType type() const { return rows ? rows->type() : values.type(); }
};

struct Table {
  std::vector<Column> inputs;
  std::optional<Column> labels;
  double validation_fraction = 0.0;                   // the last of the examples validate
  std::optional<std::uint64_t> validation_seed = {};  // ... of these in an order of this seed
  std::int64_t ignore_index = -100;
  Json description;
};

// What to do about a label that is no class.
inline constexpr std::string_view kNumberLossHint =
    "labels of a loss over classes number these; for numbers take --loss mse, l1 or huber";

// The number of examples, and which tensor says so.
struct ExampleCount {
  std::int64_t examples = 0;
  std::string_view name;
};

// Throws kBadInput for another number of examples than the tensor before it has.
void check_same_count(const DataSpec& spec, const ExampleCount& found,
                      const ExampleCount& expected);

// What the options of source and request say of the split, also in the description, which is an
// object already.
void set_split(const DataSpec& spec, const DatasetOptions& options, Table& table);

// The rows that train, of so many examples in a table with that split.
std::vector<std::int64_t> training_rows(const Table& table, std::int64_t examples);

// Integers as another integer type. Throws kBadInput instead of cutting off bits; `name` is whose
// numbers they are.
Tensor narrowed(const Tensor& integers, DType to, std::string_view name);

// Checks that the columns have equally many examples, at least one, and that integers are within
// their bounds (labels may be ignore_index too). Throws kBadInput naming source, tensor, index and
// value.
std::unique_ptr<Dataset> make_table_dataset(const DataSpec& spec, Table table);

}  // namespace trainscope
