// Norms of rows and columns first, then each element's step with its noise to either side.
#include "engine/train/first_step_noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace trainscope {
namespace {

// Sums of squares of rows, columns and all elements.
struct SumsOfSquares {
  std::size_t columns = 1;
  std::vector<double> of_row;
  std::vector<double> of_column;
  double of_all = 0.0;

  SumsOfSquares(const Shape& shape, std::span<const double> g) {
    if (shape.rank >= 2) columns = g.size() / static_cast<std::size_t>(shape[0]);
    of_row.assign(g.size() / columns, 0.0);
    of_column.assign(columns, 0.0);
    for (std::size_t row = 0; row < of_row.size(); ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const double square = g[row * columns + column] * g[row * columns + column];
        of_row[row] += square;
        of_column[column] += square;
      }
    }
    for (double& each : of_row) of_all += each;
  }
};

}  // namespace

FirstStepNoise first_step_noise(const Tensor& gradient, double scale, double relative,
                                double epsilon) {
  const std::span<const double> g = gradient.values<double>();
  FirstStepNoise result;
  if (g.empty()) return result;
  const bool is_matrix = gradient.shape().rank >= 2;
  const SumsOfSquares squares(gradient.shape(), g);
  const double norm = std::sqrt(squares.of_all);
  if (norm == 0.0) return result;
  const auto step = [epsilon](double x) { return x == 0.0 ? 0.0 : x / (std::abs(x) + epsilon); };
  const double of_each = relative * scale * norm / std::sqrt(static_cast<double>(g.size()));
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i] == 0.0) continue;
    const double noise = is_matrix ? relative * scale / norm *
                                         std::sqrt(squares.of_row[i / squares.columns] *
                                                   squares.of_column[i % squares.columns])
                                   : of_each;
    const double x = g[i] * scale;
    const double here = step(x);
    const double apart =
        std::max(std::abs(step(x + noise) - here), std::abs(step(x - noise) - here));
    result.move += here * here;
    result.apart += apart * apart;
  }
  result.move = std::sqrt(result.move);
  result.apart = std::sqrt(result.apart);
  return result;
}

}  // namespace trainscope
