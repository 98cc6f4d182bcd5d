// Windows over token ids, and which models they suit.
#include "datasets/readers/windows.h"

#include <array>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Consecutive ids.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

// Ids converted a few at a time, so that reading allocates nothing.
template <typename T>
void write_row(const TokenIds& ids, Piece piece, std::span<T> row, std::int64_t fill) {
  std::array<std::uint32_t, 512> some;
  const auto count = static_cast<std::size_t>(piece.count);
  for (std::size_t done = 0; done < count;) {
    const std::span<std::uint32_t> next(some.data(), std::min(some.size(), count - done));
    ids.read(piece.begin + static_cast<std::int64_t>(done), next);
    std::ranges::transform(next, row.begin() + static_cast<std::ptrdiff_t>(done),
                           [](std::uint32_t id) { return static_cast<T>(id); });
    done += next.size();
  }
  std::ranges::fill(row.subspan(count), static_cast<T>(fill));
}

// Row `row` of a tensor: the ids, then `fill`.
struct Row {
  Tensor& tensor;
  std::size_t row = 0;
  std::int64_t fill = 0;
};

void write_row(const TokenIds& ids, Piece piece, const Row& to) {
  const auto length = static_cast<std::size_t>(to.tensor.shape()[1]);
  const std::size_t first = to.row * length;
  if (to.tensor.dtype() == DType::kI64) {
    write_row(ids, piece, to.tensor.values<std::int64_t>().subspan(first, length), to.fill);
  } else {
    write_row(ids, piece, to.tensor.values<std::int32_t>().subspan(first, length), to.fill);
  }
}

struct WindowedIds {
  std::unique_ptr<TokenIds> ids;
  std::int64_t training = 0;  // ids that train: the first ones
  std::int64_t sequence = 0;
  std::uint64_t seed = 0;
  std::int64_t ignore_index = 0;
  Json description;
};

class WindowDataset final : public Dataset {
 public:
  WindowDataset(std::vector<Field> fields, WindowedIds windowed)
      : fields_(std::move(fields)), windowed_(std::move(windowed)) {}

  std::span<const Field> fields() const override { return fields_; }
  bool can_pad() const override { return true; }
  Json description() const override { return windowed_.description; }

  std::int64_t examples(Split split) const override {
    const std::int64_t length = split_piece(split).count;
    const std::int64_t sequence = windowed_.sequence;
    if (split == Split::kValidation) {
      return length < 2 ? 0 : (length - 1 + sequence - 1) / sequence;
    }
    if (length <= sequence) return 0;
    return std::max<std::int64_t>(1, (length - sequence) / sequence);
  }

  void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    prepare_batch(fields_, static_cast<std::int64_t>(indices.size()), out);
    const std::int64_t phase = split == Split::kTrain ? training_phase(epoch) : 0;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      if (indices[row] == kPaddingExample) {
        write_window({}, row, out);
        continue;
      }
      CHECK_INVARIANT(indices[row] >= 0 && indices[row] < examples(split));
      write_window(window(split, phase + indices[row] * windowed_.sequence), row, out);
      ++out.examples;
    }
    out.loss_terms = out.tokens;
  }

 private:
  Piece split_piece(Split split) const {
    if (split == Split::kTrain) return {.begin = 0, .count = windowed_.training};
    return {.begin = windowed_.training, .count = windowed_.ids->size() - windowed_.training};
  }

  // At most sequence + 1 ids from `begin` of the split's piece on.
  Piece window(Split split, std::int64_t begin) const {
    const Piece whole = split_piece(split);
    return {.begin = whole.begin + begin,
            .count = std::min(whole.count - begin, windowed_.sequence + 1)};
  }

  std::int64_t training_phase(std::int64_t epoch) const {
    const std::int64_t used = examples(Split::kTrain) * windowed_.sequence;
    // A window's last label may be the last id.
    const std::int64_t phases = std::min(windowed_.sequence, windowed_.training - used);
    return static_cast<std::int64_t>(random_below(windowed_.seed, kPhaseStream,
                                                  static_cast<std::uint64_t>(epoch),
                                                  static_cast<std::uint64_t>(phases)));
  }

  // Inputs without the window's last id, labels without its first.
  void write_window(Piece piece, std::size_t row, Batch& out) const {
    const std::int64_t count = std::max<std::int64_t>(piece.count - 1, 0);
    write_row(*windowed_.ids, {.begin = piece.begin, .count = count},
              {.tensor = out.tensors[0].second, .row = row, .fill = 0});
    if (out.tensors.size() > 1) {
      write_row(*windowed_.ids, {.begin = piece.begin + 1, .count = count},
                {.tensor = out.tensors[1].second, .row = row, .fill = windowed_.ignore_index});
    }
    out.tokens += count;
  }

  std::vector<Field> fields_;
  WindowedIds windowed_;
};

// The first integer input, which must be the only input.
const WantedField& ids_input(const DataSpec& spec, const DatasetOptions& options) {
  const auto& inputs = options.inputs;
  const auto found =
      std::ranges::find_if(inputs, [](const WantedField& f) { return is_index_type(f.dtype); });
  require(found != inputs.end(), ErrorCode::kUsage,
          "data '{}': {} feeds an integer input, and the model has none", printable(spec.text),
          spec.format);
  std::vector<std::string> others;
  for (const WantedField& input : inputs) {
    if (&input != &*found) others.push_back(fmt::format("'{}'", printable(input.name)));
  }
  if (!others.empty()) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("data '{}': {} feeds '{}' only, the model also needs {}", printable(spec.text),
                    spec.format, printable(found->name), join(others, ", ")))
        .hint("give all inputs with tensors:FILE.safetensors");
  }
  return *found;
}

// T: the graph's own, else --seq.
std::int64_t sequence_length(const DataSpec& spec, const WantedField& ids,
                             const DatasetOptions& options) {
  const bool is_sequence = !ids.dims || ids.dims->size() == 1;
  require(is_sequence, ErrorCode::kUsage,
          "data '{}': input '{}' has {} dimensions, {} feeds two: batch and sequence",
          printable(spec.text), printable(ids.name), ids.dims ? ids.dims->size() + 1 : 0,
          spec.format);
  require(ids.batch_axis == 0, ErrorCode::kUsage,
          "data '{}': input '{}' is time-major, {} feeds [batch, sequence]", printable(spec.text),
          printable(ids.name), spec.format);
  const std::int64_t fixed = ids.dims ? ids.dims->front() : WantedField::kAnySize;
  if (fixed != WantedField::kAnySize) {
    require(options.sequence == 0 || options.sequence == fixed, ErrorCode::kUsage,
            "--seq {} does not fit the model: input '{}' takes sequences of {}", options.sequence,
            printable(ids.name), fixed);
    require(fixed > 0, ErrorCode::kUsage, "input '{}' takes sequences of length 0",
            printable(ids.name));
    return fixed;
  }
  if (options.sequence <= 0) {
    throw Error(ErrorCode::kUsage, fmt::format("the model leaves the sequence length of input '{}' "
                                               "open",
                                               printable(ids.name)))
        .hint("give it with --seq N");
  }
  return options.sequence;
}

std::vector<Field> window_fields(const DataSpec& spec, const WantedField& ids,
                                 const DatasetOptions& options, std::int64_t sequence) {
  const TensorType ids_type{.dtype = ids.dtype, .shape = {sequence}};
  std::vector<Field> fields = {{.name = ids.name, .example = ids_type}};
  if (!options.labels) return fields;
  const WantedField& labels = *options.labels;
  const auto& dims = labels.dims;
  const bool fits =
      !dims ||
      (dims->size() == 1 && (dims->front() == WantedField::kAnySize || dims->front() == sequence));
  require(is_index_type(labels.dtype) && fits, ErrorCode::kUsage,
          "data '{}': labels '{}' of the loss are not a sequence of {} integers for each example",
          printable(spec.text), printable(labels.name), sequence);
  fields.push_back({.name = labels.name, .example = {.dtype = labels.dtype, .shape = {sequence}}});
  return fields;
}

void check_field(const DataSpec& spec, const WantedField& field, std::size_t size,
                 std::string_view what) {
  if (field.bound == 0 || size <= static_cast<std::size_t>(field.bound)) return;
  const std::string& vocabulary_file = spec.files[spec.files.size() > 1 ? 1 : 0];
  throw Error(ErrorCode::kBadInput,
              fmt::format("'{}' {}, but '{}' takes ids below {}", printable(vocabulary_file), what,
                          printable(field.name), field.bound))
      .hint(fmt::format("use a model with a vocabulary of {}", size));
}

}  // namespace

WindowPlan plan_windows(const DataSpec& spec, const DatasetOptions& options) {
  const WantedField& ids = ids_input(spec, options);
  WindowPlan plan{.ids = &ids,
                  .sequence = sequence_length(spec, ids, options),
                  .fields = {},
                  .bound = ids.bound};
  plan.fields = window_fields(spec, ids, options, plan.sequence);
  const std::int64_t labels_bound = options.labels ? options.labels->bound : 0;
  if (labels_bound > 0) {
    plan.bound = plan.bound == 0 ? labels_bound : std::min(plan.bound, labels_bound);
  }
  return plan;
}

void check_vocabulary(const DataSpec& spec, const DatasetOptions& options, std::size_t size,
                      std::string_view what) {
  for (const WantedField& input : options.inputs) check_field(spec, input, size, what);
  if (options.labels) check_field(spec, *options.labels, size, what);
}

std::unique_ptr<Dataset> make_windows(const DataSpec& spec, const DatasetOptions& options,
                                      WindowPlan plan, WindowSource source) {
  if (options.validation_seed) {
    throw Error(ErrorCode::kUsage, fmt::format("data '{}': windows of a text are split by their "
                                               "place, not by a seed",
                                               printable(spec.text)))
        .hint("--validation 0.1, or a text of its own: --validation-data SPEC");
  }
  const double fraction = spec.fraction("validation", options.validation_fraction);
  const std::int64_t count = source.ids->size();
  WindowedIds windowed{.ids = std::move(source.ids),
                       .training = training_examples(count, fraction),
                       .sequence = plan.sequence,
                       .seed = options.seed,
                       .ignore_index = options.ignore_index,
                       .description = std::move(source.description)};
  if (fraction < 1.0 && windowed.training <= windowed.sequence) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' has {} {} to train on, a window of sequence {} needs {}",
                            printable(spec.file()), windowed.training, source.unit,
                            windowed.sequence, windowed.sequence + 1))
        .hint("give more text or a shorter sequence; validation=1 evaluates a whole short text");
  }
  windowed.description.set(std::string(source.unit), count);
  windowed.description.set(fmt::format("training_{}", source.unit), windowed.training);
  windowed.description.set("sequence", windowed.sequence);
  return std::make_unique<WindowDataset>(std::move(plan.fields), std::move(windowed));
}

}  // namespace trainscope
