// From settings to a dataset.
#include "cli/data/data_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "datasets/spec.h"
#include "datasets/split.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kFlags[] = {
    {.name = "validation",
     .value = "FRACTION[,seed=N]|none",
     .help = "How much of the data validates: the last 10 % unless said otherwise; with a seed "
             "examples drawn by it; none: all train",
     .also = "validation-split|val-split"},
    {.name = "validation-data",
     .value = "SPEC",
     .help = "Data that validate, all of --data train then",
     .also = "val-data|eval-data"},
};

constexpr Flag kImageFlags[] = {
    {.name = "normalize",
     .value = "mean=M,std=S",
     .help =
         "Images become (x - mean) / std, x being 0 to 1; numbers of channels with + between them: "
         "mean=0.485+0.456+0.406,std=0.229+0.224+0.225",
     .also = "normalise"},
    {.name = "augment",
     .value = "flip,crop=N",
     .help =
         "Images that train: flip turns half of them left to right, crop=N moves each by up to N "
         "pixels, zeros coming in; drawn anew in each epoch by --seed",
     .also = "augmentation"},
};

[[noreturn]] void bad_image_flag(std::string_view flag, const std::string& text,
                                 std::string_view expected) {
  throw Error(ErrorCode::kUsage,
              fmt::format("--{} is '{}': expected {}", flag, printable(text), expected));
}

constexpr std::string_view kNormalizeForm =
    "mean=M,std=S, each a number or one for each channel with + between them, S above 0";

std::vector<double> numbers_of_channels(const std::string& text, std::string_view numbers) {
  std::vector<double> found;
  for (const std::string_view piece : split(numbers, '+')) {
    const std::optional<double> number = parse_number(piece);
    if (!number || !std::isfinite(*number)) bad_image_flag("normalize", text, kNormalizeForm);
    found.push_back(*number);
  }
  return found;
}

void parse_normalize(const std::string& text, ImageChanges& changes) {
  for (const std::string_view piece : split(text, ',')) {
    if (piece.starts_with("mean=") && changes.mean.empty()) {
      changes.mean = numbers_of_channels(text, piece.substr(5));
    } else if (piece.starts_with("std=") && changes.deviation.empty()) {
      changes.deviation = numbers_of_channels(text, piece.substr(4));
    } else {
      bad_image_flag("normalize", text, kNormalizeForm);
    }
  }
  const bool is_whole = !changes.mean.empty() && !changes.deviation.empty() &&
                        std::ranges::min(changes.deviation) > 0.0;
  if (!is_whole) bad_image_flag("normalize", text, kNormalizeForm);
}

void parse_augment(const std::string& text, ImageChanges& changes) {
  constexpr std::int64_t kMostCrop = 1024;
  for (const std::string_view piece : split(text, ',')) {
    const bool is_crop = piece.starts_with("crop=");
    const std::optional<std::int64_t> crop = is_crop ? parse_int(piece.substr(5)) : std::nullopt;
    if (piece == "flip" && !changes.flip) {
      changes.flip = true;
    } else if (crop && *crop > 0 && *crop <= kMostCrop && changes.crop == 0) {
      changes.crop = *crop;
    } else {
      bad_image_flag("augment", text, "flip, crop=N with N from 1 to 1024, or both: flip,crop=4");
    }
  }
}

[[noreturn]] void bad_validation(std::string_view text) {
  throw Error(ErrorCode::kUsage, fmt::format("--validation is '{}': expected a number from 0 to 1, "
                                             "FRACTION,seed=N or none",
                                             printable(text)))
      .hint(parse_number(text) ? "" : "data of their own are given with --validation-data SPEC");
}

void parse_validation(std::string_view text, DataRequest& request) {
  if (text == "none") {
    request.fraction = 0.0;
    return;
  }
  const std::vector<std::string_view> pieces = split(text, ',');
  request.fraction = parse_number(pieces[0]);
  if (!request.fraction || *request.fraction < 0.0 || *request.fraction > 1.0) {
    bad_validation(text);
  }
  if (pieces.size() == 1) return;
  const bool has_seed = pieces.size() == 2 && pieces[1].starts_with("seed=");
  const std::optional<std::int64_t> seed = has_seed ? parse_int(pieces[1].substr(5)) : std::nullopt;
  if (!seed || *seed < 0) bad_validation(text);
  request.seed = static_cast<std::uint64_t>(*seed);
}

void refuse_second_fraction(const DataSpec& spec, std::string_view flag) {
  if (!spec.options.contains("validation")) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("data '{}' has validation={}, and there is {}", printable(spec.text),
                          printable(spec.option("validation", "")), flag))
      .hint("give one of the two");
}

}  // namespace

std::span<const Flag> validation_flags() { return kFlags; }

std::span<const Flag> normalize_flags() { return std::span(kImageFlags).first(1); }
std::span<const Flag> image_flags() { return kImageFlags; }

ImageChanges image_changes(const Settings& settings) {
  ImageChanges changes;
  if (settings.has("normalize")) parse_normalize(settings.text("normalize"), changes);
  const bool trains = settings.all().contains("augment");
  if (trains && settings.has("augment")) parse_augment(settings.text("augment"), changes);
  return changes;
}

namespace {

std::shared_ptr<const Dataset> open_unchanged(const DataRequest& request, DatasetOptions wanted) {
  const DataSpec spec = parse_data_spec(request.source);
  wanted.validation_fraction = request.fraction.value_or(wanted.validation_fraction);
  wanted.validation_seed = request.seed;
  if (request.fraction) refuse_second_fraction(spec, "--validation");
  if (request.validation_source.empty()) return open_dataset(request.source, wanted);
  refuse_second_fraction(spec, "--validation-data");
  wanted.validation_fraction = 0.0;
  std::shared_ptr<const Dataset> training = open_dataset(request.source, wanted);
  wanted.validation_fraction = 1.0;
  take_from_training(training->description(), wanted);
  return with_validation(std::move(training), open_dataset(request.validation_source, wanted));
}

}  // namespace

DataRequest data_request(const Settings& settings) {
  DataRequest request{
      .source = settings.text("data"), .validation_source = {}, .changes = image_changes(settings)};
  const bool own_data = settings.given("data");
  const auto asked = [&](std::string_view flag) {
    return settings.has(flag) && (!own_data || settings.given(flag));
  };
  if (asked("validation")) parse_validation(settings.text("validation"), request);
  if (!asked("validation-data")) return request;
  require(!request.fraction, ErrorCode::kUsage, "--validation and --validation-data: give one");
  request.validation_source = settings.text("validation-data");
  return request;
}

std::shared_ptr<const Dataset> open_data(const DataRequest& request, DatasetOptions wanted) {
  const std::uint64_t seed = wanted.seed;
  const std::string labels = wanted.labels ? wanted.labels->name : "";
  return with_image_changes(open_unchanged(request, std::move(wanted)), labels, request.changes,
                            seed);
}

}  // namespace trainscope
