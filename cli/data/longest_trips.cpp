// Batches of a file, one after the other.
#include "cli/data/longest_trips.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "datasets/spec.h"
#include "datasets/tensor_archive.h"
#include "engine/core/batch_layout.h"
#include "engine/longest_trips.h"

namespace trainscope {
namespace {

// All examples of an input, and the batch that is filled with some of them.
struct InputRows {
  Tensor all;
  Tensor batch;
  int axis = 0;

  std::int64_t examples() const { return all.shape()[axis]; }
  void take(std::int64_t from, std::int64_t to) {
    const BatchLayout whole(all.type(), axis);
    const BatchLayout part(batch.type(), axis);
    std::vector<std::byte> row(whole.row_bytes());
    whole.read_row(all.data(), from, row.data());
    part.write_row(row.data(), to, batch.data());
  }
};

// None where the file does not hold the input as the model takes it.
std::optional<InputRows> rows_of(const TensorArchive& file, const std::string& name,
                                 const TensorType& batch, int axis) {
  if (!file.contains(name) || axis >= batch.shape.rank) return std::nullopt;
  TensorType expected = file.type(name);
  if (expected.shape.rank != batch.shape.rank) return std::nullopt;
  expected.shape[axis] = batch.shape[axis];
  if (expected != batch) return std::nullopt;
  return InputRows{.all = file.tensor(name), .batch = Tensor(batch), .axis = axis};
}

}  // namespace

void resolve_max_trips(const OnnxModel& model, const std::string& source, const Sizes& sizes,
                       ImportOptions& import) {
  if (import.max_trips || !model.op_counts().contains("Loop")) return;
  const DataSpec spec = parse_data_spec(source);
  if (spec.format != "tensors") return;
  const TripCounts counts(model, import);
  if (counts.inputs().empty()) return;
  const std::unique_ptr<TensorArchive> file = open_tensor_archive(spec.file());
  std::map<std::string, InputRows> inputs;
  for (const auto& [name, type] : counts.inputs()) {
    const auto axis = sizes.batch_axes.find(name);
    std::optional<InputRows> rows =
        rows_of(*file, name, type, axis == sizes.batch_axes.end() ? 0 : axis->second);
    if (!rows) return;
    inputs.emplace(name, std::move(*rows));
  }
  const std::int64_t examples = inputs.begin()->second.examples();
  std::int64_t longest = 1;
  for (std::int64_t first = 0; first < examples; first += sizes.batch) {
    std::map<std::string, Tensor> batch;
    for (auto& [name, rows] : inputs) {
      if (rows.examples() != examples) return;
      for (std::int64_t i = 0; i < sizes.batch; ++i) {
        rows.take(std::min(first + i, examples - 1), i);
      }
      batch.emplace(name, rows.batch);
    }
    const std::optional<std::int64_t> trips = counts.of(batch);
    if (!trips || *trips > kMostTripsUnasked) return;
    longest = std::max(longest, *trips);
  }
  import.max_trips = longest;
}

}  // namespace trainscope
