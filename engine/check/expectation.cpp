// One step's loss beside PyTorch's, and names of parameters.
#include "engine/check/expectation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "engine/check/batch_inputs.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

constexpr std::string_view kLoss = "loss";
constexpr double kTolerance = 1e-5;  // relative: two f32 programs round differently

Batch batch_of(const SafetensorsFile& file) {
  Batch batch;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name != kLoss) batch.tensors.emplace_back(entry.name, file.tensor(entry.name));
  }
  return batch;
}

double expected_loss(const SafetensorsFile& file) {
  const Tensor loss = convert(file.tensor(kLoss), DType::kF64);
  require(loss.elements() == 1, ErrorCode::kBadInput, "{}: 'loss' has {} elements, expected one",
          printable(file.path().string()), loss.elements());
  return loss.values<double>()[0];
}

// The loss of the batch, with dropouts and batch norms as they train.
double first_loss(const OnnxModel& model, CompileOptions options, const Batch& batch) {
  options.training.micro_batches = 1;
  options.import.dims.clear();
  options.import.shapes.clear();
  bind_batch_sizes(model, options.training.loss, batch, options.import);
  Session session(model, options);
  Executor& executor = session.executor();
  require_inputs(executor, model, options.training.loss, batch);
  bind_batch(executor, batch);
  for (const char* scalar : {kRandomStepInput, kStepInput}) {
    if (executor.has(scalar)) executor.write(scalar, Tensor::scalar<std::int64_t>(1));
  }
  executor.run_micro_step();
  return read_loss(executor);
}

void compare_parameters(const OnnxModel& model, const ImportOptions& import, std::string_view names,
                        ExpectationResult& result) {
  std::set<std::string> trained;
  for (const InitializerChoice& choice : choose_parameters(model, import).initializers) {
    if (choice.role == InitializerRole::kTrained) trained.insert(choice.name);
  }
  std::set<std::string> met;
  for (std::string_view line : split(names, '\n')) {
    const std::string name(trim(line));
    if (name.empty()) continue;
    const ParameterPlace place = find_parameter(model, name);
    if (place.unread) continue;
    ++result.expected;
    if (trained.contains(place.initializer)) {
      met.insert(place.initializer);
    } else {
      result.untrained.push_back(name);
    }
  }
  std::ranges::set_difference(trained, met, std::back_inserter(result.unexpected));
}

}  // namespace

ExpectationResult compare_with(const SafetensorsFile& expected, const OnnxModel& model,
                               const CompileOptions& options) {
  ExpectationResult result;
  result.expected_loss = expected_loss(expected);
  try {
    result.loss = first_loss(model, options, batch_of(expected));
  } catch (Error& error) {
    error.at(printable(expected.path().string()));
    throw;
  }
  result.loss_equal =
      std::abs(result.loss - result.expected_loss) <= kTolerance * std::abs(result.expected_loss);
  const auto names = expected.metadata().find("parameters");
  result.names_given = names != expected.metadata().end();
  if (result.names_given) compare_parameters(model, options.import, names->second, result);
  return result;
}

}  // namespace trainscope
