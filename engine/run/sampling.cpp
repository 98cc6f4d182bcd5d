// Draws ids one after the other.
#include "engine/run/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "kernels/api/random.h"

namespace trainscope {
namespace {

// Far from the streams of data order, dropout and initial parameters (1 to 4).
constexpr std::uint64_t kSamplingStream = std::uint64_t{5} << 56;

template <typename T>
void fill_window(T* row, std::int64_t length, std::span<const std::int64_t> ids) {
  std::fill_n(row, length, T{0});
  std::ranges::transform(ids, row, [](std::int64_t id) { return static_cast<T>(id); });
}

// Puts the last ids into row 0 of [B,T]; the place of the last one.
std::int64_t show(Tensor& input, std::span<const std::int64_t> ids) {
  const std::int64_t length = input.shape()[1];
  const std::size_t shown = std::min(ids.size(), static_cast<std::size_t>(length));
  if (input.dtype() == DType::kI64) {
    fill_window(input.values<std::int64_t>().data(), length, ids.last(shown));
  } else {
    fill_window(input.values<std::int32_t>().data(), length, ids.last(shown));
  }
  return static_cast<std::int64_t>(shown) - 1;
}

void check_program(const TensorType& input, const TensorType& output, std::int64_t known_ids) {
  const bool ids = input.shape.rank == 2 && input.shape[1] > 0;
  const bool logits = output.shape.rank == 3 && output.dtype == DType::kF32 && ids &&
                      output.shape[1] == input.shape[1];
  require(
      ids && logits, ErrorCode::kUsage,
      "--sample needs a model from ids [B,T] to f32 logits [B,T,V]; this one goes from {} to {}",
      type_text(input), type_text(output));
  require(output.shape[2] >= known_ids, ErrorCode::kBadInput,
          "the model knows {} characters, the run's vocabulary has {}", output.shape[2], known_ids);
}

// Of one example where the model takes that, else of a batch whose further examples nobody reads.
Executor& program_for_one(ForwardPrograms& programs) {
  Executor* one = programs.executor(GraphMode::kInference, 1);
  return one == nullptr ? programs.executor(GraphMode::kInference) : *one;
}

}  // namespace

std::int64_t draw(std::span<const float> logits, double temperature, double uniform) {
  const auto largest = std::ranges::max_element(logits);
  if (temperature == 0.0) return largest - logits.begin();
  std::vector<double> weights;
  double sum = 0.0;
  for (float logit : logits) {
    weights.push_back(std::exp((static_cast<double>(logit) - *largest) / temperature));
    sum += weights.back();
  }
  double left = uniform * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0.0) return static_cast<std::int64_t>(i);
  }
  return largest - logits.begin();  // rounding ate the last weight
}

std::vector<std::int64_t> sample_ids(ForwardPrograms& programs, const SamplingOptions& options) {
  Executor& executor = program_for_one(programs);
  Tensor input(executor.memory().type(options.input));
  Tensor output(executor.memory().type(options.output));
  check_program(input.type(), output.type(), options.ids);
  CHECK_INVARIANT(!options.prompt.empty() && options.ids > 0);
  std::vector<std::int64_t> ids = options.prompt;
  const std::int64_t row = output.shape()[2];
  for (std::int64_t i = 0; i < options.count; ++i) {
    const std::int64_t place = show(input, ids);
    executor.write(options.input, input);
    executor.run_micro_step();
    executor.memory().read_into(options.output, output);
    const std::span<const float> logits(output.values<float>().data() + place * row,
                                        static_cast<std::size_t>(options.ids));
    const double uniform =
        random_uniform_f64(options.seed, kSamplingStream, static_cast<std::uint64_t>(i));
    ids.push_back(draw(logits, options.temperature, uniform));
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(options.prompt.size()));
  return ids;
}

}  // namespace trainscope
