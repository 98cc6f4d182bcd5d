// Determinants of matrices and their gradients, exact for singular matrices too.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// What one matrix of n x n needs: two matrices and the order of rows and columns.
template <typename T>
struct Scratch {
  T* factors;  // [n, n]: U in and above the diagonal, L below it, where its 1s are left out
  T* inverse;  // [n, n]
  std::int64_t* rows;
  std::int64_t* columns;

  static std::size_t bytes(std::int64_t n) {
    const auto numbers = static_cast<std::size_t>(2 * n * n) * sizeof(T);
    return (numbers + 7) / 8 * 8 + static_cast<std::size_t>(2 * n) * sizeof(std::int64_t);
  }
  Scratch(void* workspace, std::int64_t matrix, std::int64_t n) {
    auto* begin = static_cast<std::byte*>(workspace) + static_cast<std::size_t>(matrix) * bytes(n);
    factors = reinterpret_cast<T*>(begin);
    inverse = factors + n * n;
    const std::size_t numbers = (static_cast<std::size_t>(2 * n * n) * sizeof(T) + 7) / 8 * 8;
    rows = reinterpret_cast<std::int64_t*>(begin + numbers);
    columns = rows + n;
  }
};

// The largest element of rows and columns k and later comes to place (k, k). Returns -1 to the
// number of exchanges.
template <typename T>
T exchange(const Scratch<T>& s, std::int64_t n, std::int64_t k) {
  std::int64_t row = k;
  std::int64_t column = k;
  for (std::int64_t i = k; i < n; ++i) {
    for (std::int64_t j = k; j < n; ++j) {
      if (std::abs(s.factors[i * n + j]) > std::abs(s.factors[row * n + column])) {
        row = i;
        column = j;
      }
    }
  }
  T sign = 1;
  if (row != k) {
    std::swap_ranges(s.factors + row * n, s.factors + (row + 1) * n, s.factors + k * n);
    std::swap(s.rows[row], s.rows[k]);
    sign = -sign;
  }
  if (column != k) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::swap(s.factors[i * n + column], s.factors[i * n + k]);
    }
    std::swap(s.columns[column], s.columns[k]);
    sign = -sign;
  }
  return sign;
}

// a[rows, columns] = L U with complete pivoting: of a singular matrix the last diagonal elements of
// U are 0. Returns the sign of both orders.
template <typename T>
T factorize(const T* a, std::int64_t n, const Scratch<T>& s) {
  std::copy(a, a + n * n, s.factors);
  T sign = 1;
  for (std::int64_t k = 0; k < n; ++k) s.rows[k] = s.columns[k] = k;
  for (std::int64_t k = 0; k < n; ++k) {
    sign *= exchange(s, n, k);
    const T pivot = s.factors[k * n + k];
    if (pivot == T{0}) break;  // and so is all that is left
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = s.factors[i * n + k] / pivot;
      s.factors[i * n + k] = factor;
      for (std::int64_t j = k + 1; j < n; ++j) {
        s.factors[i * n + j] -= factor * s.factors[k * n + j];
      }
    }
  }
  return sign;
}

// x [matrices, n, n] -> y [matrices]
template <typename T>
void determinant(const RunArgs& run) {
  const Shape& shape = run.inputs[0].shape();
  const std::int64_t n = shape[shape.rank - 1];
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), row_grain(n * n * n),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t m = begin; m < end; ++m) {
                   const Scratch<T> s(run.workspace, m, n);
                   T product = factorize(x + m * n * n, n, s);
                   for (std::int64_t k = 0; k < n; ++k) product *= s.factors[k * n + k];
                   y[m] = product;
                 }
               });
}

// s.inverse = the inverse of L.
template <typename T>
void invert_lower(std::int64_t n, const Scratch<T>& s) {
  std::fill_n(s.inverse, n * n, T{0});
  for (std::int64_t i = 0; i < n; ++i) {
    s.inverse[i * n + i] = T{1};
    for (std::int64_t k = 0; k < i; ++k) {
      const T factor = s.factors[i * n + k];
      for (std::int64_t j = 0; j <= k; ++j) {
        s.inverse[i * n + j] -= factor * s.inverse[k * n + j];
      }
    }
  }
}

// s.inverse = the adjugate of L U. With U = [V u; 0 d] and p = det V that of U is
// [p d inverse(V), -p inverse(V) u; 0, p], which divides by no d; it is 0 where p is.
template <typename T>
void adjugate(std::int64_t n, const Scratch<T>& s) {
  const std::int64_t last = n - 1;
  const T d = s.factors[last * n + last];
  T p = 1;
  for (std::int64_t k = 0; k < last; ++k) p *= s.factors[k * n + k];
  if (p == T{0}) {
    std::fill_n(s.inverse, n * n, T{0});
    return;
  }
  invert_lower(n, s);
  T* lowest = s.inverse + last * n;
  for (std::int64_t i = last; i-- > 0;) {
    T* row = s.inverse + i * n;
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = p * (d * row[j] - s.factors[i * n + last] * lowest[j]);
      for (std::int64_t k = i + 1; k < last; ++k)
        sum -= s.factors[i * n + k] * s.inverse[k * n + j];
      row[j] = sum / s.factors[i * n + i];
    }
  }
  for (std::int64_t j = 0; j < n; ++j) lowest[j] *= p;
}

// dy [matrices], x -> dx: dy times the cofactors of x.
template <typename T>
void determinant_grad(const RunArgs& run) {
  const Shape& shape = run.inputs[1].shape();
  const std::int64_t n = shape[shape.rank - 1];
  const T* dy = run.inputs[0].as<const T>();
  const T* x = run.inputs[1].as<const T>();
  T* dx = run.outputs[0].as<T>();
  if (n == 0) return;
  parallel_for(run.threads, run.inputs[0].elements(), row_grain(2 * n * n * n),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t m = begin; m < end; ++m) {
                   const Scratch<T> s(run.workspace, m, n);
                   const T factor = dy[m] * factorize(x + m * n * n, n, s);
                   adjugate(n, s);
                   T* to = dx + m * n * n;
                   for (std::int64_t i = 0; i < n; ++i) {
                     for (std::int64_t j = 0; j < n; ++j) {
                       to[s.rows[i] * n + s.columns[j]] = factor * s.inverse[j * n + i];
                     }
                   }
                 }
               });
}

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  const TensorView& x = args.inputs.back();  // the matrices come last
  const std::int64_t n = x.shape()[x.shape().rank - 1];
  const std::int64_t matrices = n == 0 ? 0 : x.elements() / (n * n);
  return {.workspace_bytes = static_cast<std::size_t>(matrices) * Scratch<T>::bytes(n),
          .state = nullptr};
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("Det", kDTypeOf<T>,
            {.name = "determinant", .prepare = prepare<T>, .run = determinant<T>});
  table.add("DetGrad", kDTypeOf<T>,
            {.name = "determinant_grad", .prepare = prepare<T>, .run = determinant_grad<T>});
}

}  // namespace

void add_determinant(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
