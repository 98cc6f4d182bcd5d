// CtcLoss with its gradient: sums over paths, forwards and backwards in time, in logarithms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // log of probability 0
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double log_sum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  const double most = std::max(a, b);
  if (most == kNever) return kNever;
  return most + std::log1p(std::exp(std::min(a, b) - most));
}

// One example: its labels with a blank before, between and after them are the places of a path.
template <typename T>
struct Example {
  const T* scores;  // [times, .., classes], rows `stride` apart
  std::int64_t stride;
  std::int64_t classes;
  const std::int64_t* labels;
  std::int64_t times;
  std::int64_t count;  // of labels
  std::int64_t blank;

  std::int64_t places() const { return 2 * count + 1; }
  std::int64_t class_at(std::int64_t place) const {
    return place % 2 == 0 ? blank : labels[place / 2];
  }
  double score(std::int64_t time, std::int64_t place) const {
    return static_cast<double>(scores[time * stride + class_at(place)]);
  }
  // Whether a path may go from place - 2 to place: over a blank between two different labels.
  bool may_skip(std::int64_t place) const {
    return place >= 2 && place % 2 == 1 && class_at(place) != class_at(place - 2);
  }
  bool is_sound(std::int64_t most_times, std::int64_t most_labels) const {
    if (times < 0 || times > most_times || count < 0 || count > most_labels) return false;
    return std::all_of(labels, labels + count, [this](std::int64_t label) {
      return label >= 0 && label < classes && label != blank;
    });
  }
};

// What the kernels read: inputs from `first` on are log_probs [T, N, C], labels [N, S], lengths.
template <typename T>
class Examples {
 public:
  Examples(const RunArgs& a, std::size_t first)
      : scores_(a.inputs[first]),
        labels_(a.inputs[first + 1]),
        times_(a.inputs[first + 2].as<const std::int64_t>()),
        counts_(a.inputs[first + 3].as<const std::int64_t>()),
        blank_(std::get<LossParams>(a.params).ignore_index) {}

  std::int64_t size() const { return scores_.shape()[1]; }
  std::int64_t times() const { return scores_.shape()[0]; }
  std::int64_t classes() const { return scores_.shape()[2]; }
  std::int64_t most_labels() const { return labels_.shape()[1]; }
  std::int64_t most_places() const { return 2 * most_labels() + 1; }

  Example<T> operator[](std::int64_t n) const {
    return {.scores = scores_.as<const T>() + n * classes(),
            .stride = size() * classes(),
            .classes = classes(),
            .labels = labels_.as<const std::int64_t>() + n * most_labels(),
            .times = times_[n],
            .count = counts_[n],
            .blank = blank_};
  }
  bool is_sound(const Example<T>& example) const {
    return example.is_sound(times(), most_labels());
  }

 private:
  const TensorView& scores_;
  const TensorView& labels_;
  const std::int64_t* times_;
  const std::int64_t* counts_;
  std::int64_t blank_;
};

// The paths of the first times up to each place, this time's score among them.
template <typename T>
void step_forward(const Example<T>& e, std::int64_t time, const double* before, double* now) {
  for (std::int64_t s = 0; s < e.places(); ++s) {
    double paths = time == 0 ? (s < 2 ? 0.0 : kNever) : before[s];
    if (time > 0 && s >= 1) paths = log_sum(paths, before[s - 1]);
    if (time > 0 && e.may_skip(s)) paths = log_sum(paths, before[s - 2]);
    now[s] = paths + e.score(time, s);
  }
}

// The paths of the later times from each place on, without this time's score.
template <typename T>
void step_backward(const Example<T>& e, std::int64_t time, const double* after, double* now) {
  const std::int64_t places = e.places();
  for (std::int64_t s = 0; s < places; ++s) {
    if (time == e.times - 1) {
      now[s] = s + 2 >= places ? 0.0 : kNever;
      continue;
    }
    double paths = after[s] + e.score(time + 1, s);
    if (s + 1 < places) paths = log_sum(paths, after[s + 1] + e.score(time + 1, s + 1));
    if (s + 2 < places && e.may_skip(s + 2)) {
      paths = log_sum(paths, after[s + 2] + e.score(time + 1, s + 2));
    }
    now[s] = paths;
  }
}

// Of paths that end in the last label or in the blank after it.
template <typename T>
double log_probability(const Example<T>& e, const double* last) {
  if (e.times == 0) return e.count == 0 ? 0.0 : kNever;
  const double end = last[e.places() - 1];
  return e.count == 0 ? end : log_sum(end, last[e.places() - 2]);
}

std::int64_t places_of(const TensorView& labels) { return 2 * labels.shape()[1] + 1; }

Prepared prepare_loss(const PrepareArgs& a) {
  const auto rows = static_cast<std::size_t>(2 * a.inputs[0].shape()[1] * places_of(a.inputs[1]));
  return {.workspace_bytes = rows * sizeof(double), .state = nullptr};
}

template <typename T>
void ctc_loss(const RunArgs& a) {
  const Examples<T> examples(a, 0);
  T* losses = a.outputs[0].as<T>();
  auto* workspace = static_cast<double*>(a.workspace);
  const auto one = [&](std::int64_t n) {
    const Example<T> e = examples[n];
    if (!examples.is_sound(e)) {
      losses[n] = static_cast<T>(kNaN);
      return;
    }
    double* now = workspace + 2 * n * examples.most_places();
    double* before = now + examples.most_places();
    for (std::int64_t time = 0; time < e.times; ++time) {
      std::swap(now, before);
      step_forward(e, time, before, now);
    }
    losses[n] = static_cast<T>(-log_probability(e, now));
  };
  parallel_for(a.threads, examples.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) one(n);
  });
}

// For each example the forward rows of all times, and two backward rows.
Prepared prepare_grad(const PrepareArgs& a) {
  const Shape& scores = a.inputs[1].shape();
  const std::int64_t rows = scores[1] * (scores[0] + 2);
  return {
      .workspace_bytes = static_cast<std::size_t>(rows * places_of(a.inputs[2])) * sizeof(double),
      .state = nullptr};
}

// d(-log P) / dscore at a time and class: minus the share of P that goes through that class there.
struct PathRows {
  std::span<double> all;
  std::int64_t width;  // of a row
};

template <typename T>
void add_shares(const Example<T>& e, const PathRows& path_rows, double dloss, T* dscores) {
  const auto& [rows, width] = path_rows;
  double* forward = rows.data();
  for (std::int64_t time = 0; time < e.times; ++time) {
    step_forward(e, time, time == 0 ? forward : forward + (time - 1) * width,
                 forward + time * width);
  }
  double* now = forward + (static_cast<std::int64_t>(rows.size()) - 2 * width);
  double* after = now + width;
  const double total = log_probability(e, e.times == 0 ? forward : forward + (e.times - 1) * width);
  for (std::int64_t time = e.times - 1; time >= 0; --time) {
    std::swap(now, after);
    step_backward(e, time, after, now);
    T* row = dscores + time * e.stride;
    for (std::int64_t s = 0; s < e.places(); ++s) {
      const double share = std::exp(forward[time * width + s] + now[s] - total);
      row[e.class_at(s)] -= static_cast<T>(dloss * share);
    }
  }
}

template <typename T>
void ctc_loss_grad(const RunArgs& a) {
  const Examples<T> examples(a, 1);
  const T* dlosses = a.inputs[0].as<const T>();
  T* dscores = a.outputs[0].as<T>();
  auto* workspace = static_cast<double*>(a.workspace);
  const std::int64_t width = examples.most_places();
  const std::int64_t own = (examples.times() + 2) * width;
  const auto one = [&](std::int64_t n) {
    const Example<T> e = examples[n];
    T* to = dscores + n * examples.classes();
    const bool sound = examples.is_sound(e);
    for (std::int64_t time = 0; time < examples.times(); ++time) {
      std::fill_n(to + time * e.stride, examples.classes(), sound ? T{0} : static_cast<T>(kNaN));
    }
    const auto dloss = static_cast<double>(dlosses[n]);
    if (!sound || dloss == 0.0) return;
    add_shares(e, {{workspace + n * own, static_cast<std::size_t>(own)}, width}, dloss, to);
  };
  parallel_for(a.threads, examples.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) one(n);
  });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("CtcLoss", kDTypeOf<T>,
            {.name = "ctc_loss.reference", .prepare = prepare_loss, .run = ctc_loss<T>});
  table.add("CtcLossGrad", kDTypeOf<T>,
            {.name = "ctc_loss_grad.reference", .prepare = prepare_grad, .run = ctc_loss_grad<T>});
}

}  // namespace

void add_ctc_loss(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
