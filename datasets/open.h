// Opens a data source as a dataset that feeds the inputs of a graph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/vocabulary.h"
#include "engine/train/data.h"

namespace trainscope {

// Ids, and numbers of classes.
constexpr bool is_index_type(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }

// A tensor that the graph or the loss wants from the data.
struct WantedField {
  static constexpr std::int64_t kAnySize = -1;

  std::string name;
  DType dtype = DType::kF32;
  // Of one example, without the batch dimension; kAnySize where the graph leaves it open. Absent
  // when nothing is known of the shape.
  std::optional<std::vector<std::int64_t>> dims = std::nullopt;
  // Integers must be 0 to bound - 1 (rows of the table that they look up, number of classes);
  // 0: not known.
  std::int64_t bound = 0;
  std::optional<std::int64_t> ignored = std::nullopt;  // labels may have this value besides
  int batch_axis = 0;                                  // as in Field
};

struct DatasetOptions {
  std::vector<WantedField> inputs = {};  // every graph input that has no value of its own
  std::optional<WantedField> labels = std::nullopt;  // none when the graph computes its loss itself
  std::int64_t ignore_index = -100;                  // labels with this value are not learned
  std::int64_t sequence = 0;  // for dimensions that the graph leaves open; 0: not given
  std::uint64_t seed = 0;
  double validation_fraction = 0.1;  // unless the source says otherwise
  // Examples that validate are drawn with this seed; absent: the last ones validate.
  std::optional<std::uint64_t> validation_seed = std::nullopt;
  // Of the trained model, for its evaluation; absent: that of the text.
  std::optional<Vocabulary> vocabulary = std::nullopt;
  // Of the trained model, where its labels are text; empty: the sorted ones of the file.
  std::vector<std::string> class_names = {};
  // Of the training data, by column: what stands for an empty cell with missing=mean; empty: those
  // of the source's own rows that train.
  std::map<std::string, double, std::less<>> column_means = {};
  bool without_labels = false;  // labels that the data have are not read, whatever wants them
  std::filesystem::path data_folder = {};  // where fetched sets of the catalog are
};

// Data that validate, or that a trained model is given, are read with what the description of the
// training data holds: the ids of characters, the names of classes, the means of columns.
void take_from_training(const Json& description, DatasetOptions& options);

// Throws kUsage for a bad source text or one that does not suit the graph, kIo for a file that
// cannot be read, kBadInput for bad content.
std::unique_ptr<Dataset> open_dataset(std::string_view source, const DatasetOptions& options);

}  // namespace trainscope
