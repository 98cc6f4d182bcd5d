// A ring of samples for each instruction, and their medians.
#include "engine/op_times.h"

#include <algorithm>

#include "engine/recompute/costs.h"

namespace trainscope {

OpTimes::OpTimes(const Program& program)
    : program_(program), samples_(program.instructions.size()) {}

void OpTimes::before(std::size_t) { start_ = std::chrono::steady_clock::now(); }

void OpTimes::after(std::size_t instruction) {
  const std::chrono::duration<float> elapsed = std::chrono::steady_clock::now() - start_;
  Samples& samples = samples_[instruction];
  samples.seconds[samples.count++ % kSamples] = elapsed.count();
}

std::vector<double> OpTimes::seconds() const {
  std::vector<double> result(program_.graph.node_capacity(), 0.0);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    Samples samples = samples_[i];
    const std::size_t count = std::min(samples.count, kSamples);
    if (count == 0) continue;
    const auto middle = samples.seconds.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(samples.seconds.begin(), middle,
                     samples.seconds.begin() + static_cast<std::ptrdiff_t>(count));
    result[static_cast<std::size_t>(program_.instructions[i].node)] = static_cast<double>(*middle);
  }
  return result;
}

void OpTimes::write(const std::filesystem::path& path) const {
  write_node_seconds(path, program_.graph, seconds());
}

}  // namespace trainscope
