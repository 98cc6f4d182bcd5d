// Windows over the ids of a text's characters.
#include "datasets/readers/text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{8} << 30;

using Ids = std::span<const std::uint16_t>;

// Writes ids as the integers of one row, then `fill`.
template <typename T>
void write_row(Ids ids, std::span<T> row, std::int64_t fill) {
  const auto end = std::copy(ids.begin(), ids.end(), row.begin());
  std::fill(end, row.end(), static_cast<T>(fill));
}

void write_row(Ids ids, Tensor& tensor, std::size_t row, std::int64_t fill) {
  const auto length = static_cast<std::size_t>(tensor.shape()[1]);
  if (tensor.dtype() == DType::kI64) {
    write_row(ids, tensor.values<std::int64_t>().subspan(row * length, length), fill);
  } else {
    write_row(ids, tensor.values<std::int32_t>().subspan(row * length, length), fill);
  }
}

struct TextParts {
  std::vector<std::uint16_t> ids;
  std::int64_t training = 0;  // characters that train: the first ones
  std::int64_t sequence = 0;
  std::uint64_t seed = 0;
  std::int64_t ignore_index = 0;
  Json description;
};

class TextDataset final : public Dataset {
 public:
  TextDataset(std::vector<Field> fields, TextParts parts)
      : fields_(std::move(fields)), parts_(std::move(parts)) {}

  std::span<const Field> fields() const override { return fields_; }
  bool can_pad() const override { return true; }
  Json description() const override { return parts_.description; }

  std::int64_t examples(Split split) const override {
    const auto length = static_cast<std::int64_t>(text(split).size());
    const std::int64_t sequence = parts_.sequence;
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
      write_window(window(split, phase + indices[row] * parts_.sequence), row, out);
      ++out.examples;
    }
    out.loss_terms = out.tokens;
  }

 private:
  Ids text(Split split) const {
    const auto training = static_cast<std::size_t>(parts_.training);
    const Ids all(parts_.ids);
    return split == Split::kTrain ? all.first(training) : all.subspan(training);
  }

  // At most sequence + 1 characters from `begin` on.
  Ids window(Split split, std::int64_t begin) const {
    const Ids rest = text(split).subspan(static_cast<std::size_t>(begin));
    return rest.first(std::min(rest.size(), static_cast<std::size_t>(parts_.sequence) + 1));
  }

  std::int64_t training_phase(std::int64_t epoch) const {
    const std::int64_t used = examples(Split::kTrain) * parts_.sequence;
    // A window's last label may be the text's last character.
    const std::int64_t phases = std::min(parts_.sequence, parts_.training - used);
    return static_cast<std::int64_t>(random_below(parts_.seed, kPhaseStream,
                                                  static_cast<std::uint64_t>(epoch),
                                                  static_cast<std::uint64_t>(phases)));
  }

  // Inputs without the window's last character, labels without its first.
  void write_window(Ids ids, std::size_t row, Batch& out) const {
    const std::size_t count = ids.empty() ? 0 : ids.size() - 1;
    write_row(ids.first(count), out.tensors[0].second, row, 0);
    if (out.tensors.size() > 1) {
      write_row(ids.last(count), out.tensors[1].second, row, parts_.ignore_index);
    }
    out.tokens += static_cast<std::int64_t>(count);
  }

  std::vector<Field> fields_;
  TextParts parts_;
};

bool is_integer(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }

// The first integer input, which must be the only input.
const WantedField& ids_input(const DataSpec& spec, const DatasetOptions& options) {
  const auto& inputs = options.inputs;
  const auto found =
      std::ranges::find_if(inputs, [](const WantedField& f) { return is_integer(f.dtype); });
  require(found != inputs.end(), ErrorCode::kUsage,
          "data '{}': text feeds an integer input, and the model has none", printable(spec.text));
  std::vector<std::string> others;
  for (const WantedField& input : inputs) {
    if (&input != &*found) others.push_back(fmt::format("'{}'", printable(input.name)));
  }
  if (!others.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("data '{}': text feeds '{}' only, the model also needs {}",
                            printable(spec.text), printable(found->name), join(others, ", ")))
        .hint("give all inputs with tensors:FILE.safetensors");
  }
  return *found;
}

// T: the graph's own, else --seq.
std::int64_t sequence_length(const DataSpec& spec, const WantedField& ids,
                             const DatasetOptions& options) {
  const bool is_sequence = !ids.dims || ids.dims->size() == 1;
  require(is_sequence, ErrorCode::kUsage,
          "data '{}': input '{}' has {} dimensions, text feeds two: batch and sequence",
          printable(spec.text), printable(ids.name), ids.dims ? ids.dims->size() + 1 : 0);
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

void check_bound(const DataSpec& spec, const WantedField& field, const Vocabulary& vocabulary) {
  if (field.bound == 0 || vocabulary.size() <= static_cast<std::size_t>(field.bound)) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("'{}' has {} distinct characters, but '{}' takes ids below {}",
                  printable(spec.file), vocabulary.size(), printable(field.name), field.bound))
      .hint(fmt::format("use a model with a vocabulary of {}", vocabulary.size()));
}

std::vector<Field> text_fields(const DataSpec& spec, const WantedField& ids,
                               const DatasetOptions& options, std::int64_t sequence) {
  const TensorType ids_type{.dtype = ids.dtype, .shape = {sequence}};
  std::vector<Field> fields = {{.name = ids.name, .example = ids_type}};
  if (!options.labels) return fields;
  const WantedField& labels = *options.labels;
  const auto& dims = labels.dims;
  const bool fits =
      !dims ||
      (dims->size() == 1 && (dims->front() == WantedField::kAnySize || dims->front() == sequence));
  require(is_integer(labels.dtype) && fits, ErrorCode::kUsage,
          "data '{}': labels '{}' of the loss are not a sequence of {} integers for each example",
          printable(spec.text), printable(labels.name), sequence);
  fields.push_back({.name = labels.name, .example = {.dtype = labels.dtype, .shape = {sequence}}});
  return fields;
}

}  // namespace

std::string read_text(const std::string& file) {
  std::string text = read_file(file, kMaxTextBytes);
  require(!text.empty(), ErrorCode::kBadInput, "'{}' is empty", printable(file));
  return text;
}

std::unique_ptr<Dataset> open_text(const DataSpec& spec, const DatasetOptions& options) {
  const WantedField& ids = ids_input(spec, options);
  TextParts parts{.ids = {},
                  .training = 0,
                  .sequence = sequence_length(spec, ids, options),
                  .seed = options.seed,
                  .ignore_index = options.ignore_index,
                  .description = {}};
  std::vector<Field> fields = text_fields(spec, ids, options, parts.sequence);
  const std::string text = read_text(spec.file);
  Vocabulary vocabulary;
  try {
    vocabulary = options.vocabulary ? *options.vocabulary : Vocabulary::of(text);
    parts.ids = vocabulary.encode(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", printable(spec.file), error.message()))
        .hint(error.hint());
  }
  check_bound(spec, ids, vocabulary);
  if (options.labels) check_bound(spec, *options.labels, vocabulary);

  const double fraction = spec.fraction("validation", options.validation_fraction);
  const auto characters = static_cast<std::int64_t>(parts.ids.size());
  parts.training = training_examples(characters, fraction);
  if (fraction < 1.0 && parts.training <= parts.sequence) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("'{}' has {} characters to train on, a window of sequence {} needs {}",
                    printable(spec.file), parts.training, parts.sequence, parts.sequence + 1))
        .hint("give more text or a shorter sequence; validation=1 evaluates a whole short text");
  }
  parts.description = Json::object({{"kind", name_of(spec.kind)},
                                    {"file", spec.file},
                                    {"size_bytes", text.size()},
                                    {"xxh3", hash_hex(hash_bytes(std::as_bytes(std::span(text))))},
                                    {"characters", characters},
                                    {"training_characters", parts.training},
                                    {"sequence", parts.sequence},
                                    {"vocabulary", vocabulary.to_json()}});
  return std::make_unique<TextDataset>(std::move(fields), std::move(parts));
}

}  // namespace trainscope
