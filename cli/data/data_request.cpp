// From settings to a dataset.
#include "cli/data/data_request.h"

#include <fmt/format.h>

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

DataRequest data_request(const Settings& settings) {
  DataRequest request{.source = settings.text("data"), .validation_source = {}};
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

}  // namespace trainscope
