// CtcLoss with its gradient: sums over paths, forwards and backwards in time, in logarithms and in
// double. A block an example; its threads share the places of a path.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/loss/class_scores.h"

namespace trainscope::cuda {
namespace {

constexpr unsigned kCtcThreads = 128;

__device__ double never() { return -static_cast<double>(INFINITY); }  // log of probability 0

__device__ double log_sum(double a, double b) {
  if (a != a || b != b) return not_a_number();
  const double most = a > b ? a : b;
  if (most == never()) return never();
  return most + std::log1p(std::exp((a > b ? b : a) - most));
}

// log_probs [T, N, C], labels [N, S], lengths in time and in labels [N].
template <typename T>
struct CtcCall {
  const T* scores;
  const std::int64_t* labels;
  const std::int64_t* times;
  const std::int64_t* counts;
  std::int64_t most_times;
  std::int64_t examples;
  std::int64_t classes;
  std::int64_t most_labels;
  std::int64_t blank;
  double* workspace;

  __host__ __device__ std::int64_t most_places() const { return 2 * most_labels + 1; }
};

template <typename T>
CtcCall<T> ctc_call(const RunArgs& args, std::size_t first) {
  const Shape& scores = args.inputs[first].shape();
  return {.scores = args.inputs[first].as<const T>(),
          .labels = args.inputs[first + 1].as<const std::int64_t>(),
          .times = args.inputs[first + 2].as<const std::int64_t>(),
          .counts = args.inputs[first + 3].as<const std::int64_t>(),
          .most_times = scores[0],
          .examples = scores[1],
          .classes = scores[2],
          .most_labels = args.inputs[first + 1].shape()[1],
          .blank = std::get<LossParams>(args.params).ignore_index,
          .workspace = static_cast<double*>(args.workspace)};
}

// The block's example: its labels with a blank before, between and after them are the places of a
// path.
template <typename T>
struct CtcExample {
  const T* scores;  // [times, classes], rows `stride` apart
  std::int64_t stride;
  const std::int64_t* labels;
  std::int64_t times;
  std::int64_t count;  // of labels
  std::int64_t blank;

  __device__ std::int64_t places() const { return 2 * count + 1; }
  __device__ std::int64_t class_at(std::int64_t place) const {
    return place % 2 == 0 ? blank : labels[place / 2];
  }
  __device__ double score(std::int64_t time, std::int64_t place) const {
    return static_cast<double>(scores[time * stride + class_at(place)]);
  }
  // Whether a path may go from place - 2 to place: over a blank between two different labels.
  __device__ bool may_skip(std::int64_t place) const {
    return place >= 2 && place % 2 == 1 && class_at(place) != class_at(place - 2);
  }
};

template <typename T>
__device__ CtcExample<T> own_example(const CtcCall<T>& a) {
  const std::int64_t n = blockIdx.x;
  return {a.scores + n * a.classes,
          a.examples * a.classes,
          a.labels + n * a.most_labels,
          a.times[n],
          a.counts[n],
          a.blank};
}

// Whether lengths and labels are possible; all threads of the block ask.
template <typename T>
__device__ bool is_sound(const CtcCall<T>& a, const CtcExample<T>& e) {
  if (e.times < 0 || e.times > a.most_times || e.count < 0 || e.count > a.most_labels) return false;
  int faults = 0;
  for (std::int64_t i = threadIdx.x; i < e.count; i += blockDim.x) {
    const std::int64_t label = e.labels[i];
    if (label < 0 || label >= a.classes || label == e.blank) ++faults;
  }
  return __syncthreads_or(faults) == 0;
}

// now[s]: the paths of the first times up to each place, this time's score among them. Ends with a
// barrier.
template <typename T>
__device__ void step_forward(const CtcExample<T>& e, std::int64_t time, const double* before,
                             double* now) {
  for (std::int64_t s = threadIdx.x; s < e.places(); s += blockDim.x) {
    double paths = time == 0 ? (s < 2 ? 0.0 : never()) : before[s];
    if (time > 0 && s >= 1) paths = log_sum(paths, before[s - 1]);
    if (time > 0 && e.may_skip(s)) paths = log_sum(paths, before[s - 2]);
    now[s] = paths + e.score(time, s);
  }
  __syncthreads();
}

// now[s]: the paths of the later times from each place on, without this time's score. Ends with a
// barrier.
template <typename T>
__device__ void step_backward(const CtcExample<T>& e, std::int64_t time, const double* after,
                              double* now) {
  const std::int64_t places = e.places();
  for (std::int64_t s = threadIdx.x; s < places; s += blockDim.x) {
    if (time == e.times - 1) {
      now[s] = s + 2 >= places ? 0.0 : never();
      continue;
    }
    double paths = after[s] + e.score(time + 1, s);
    if (s + 1 < places) paths = log_sum(paths, after[s + 1] + e.score(time + 1, s + 1));
    if (s + 2 < places && e.may_skip(s + 2)) {
      paths = log_sum(paths, after[s + 2] + e.score(time + 1, s + 2));
    }
    now[s] = paths;
  }
  __syncthreads();
}

// Of paths that end in the last label or in the blank after it; `last`: the row of the last time.
template <typename T>
__device__ double log_probability(const CtcExample<T>& e, const double* last) {
  if (e.times == 0) return e.count == 0 ? 0.0 : never();
  const double end = last[e.places() - 1];
  return e.count == 0 ? end : log_sum(end, last[e.places() - 2]);
}

// Workspace: two rows of places an example.
template <typename T>
__global__ void __launch_bounds__(kCtcThreads) ctc_losses(const CtcCall<T> a, T* losses) {
  const CtcExample<T> e = own_example(a);
  if (!is_sound(a, e)) {
    if (threadIdx.x == 0) losses[blockIdx.x] = static_cast<T>(not_a_number());
    return;
  }
  double* const rows = a.workspace + std::int64_t{blockIdx.x} * 2 * a.most_places();
  const auto row_of = [&](std::int64_t time) { return rows + time % 2 * a.most_places(); };
  for (std::int64_t time = 0; time < e.times; ++time) {
    step_forward(e, time, row_of(time + 1), row_of(time));
  }
  if (threadIdx.x != 0) return;
  losses[blockIdx.x] = static_cast<T>(-log_probability(e, row_of(e.times + 1)));
}

// dscores of a time: minus the share of the paths that go through each class there. The places of
// one class are added up by one thread, in order: of the blank by the first, of a label by the
// thread of its first place.
template <typename T>
__device__ void add_shares(const CtcExample<T>& e, const double* forward, const double* backward,
                           double total, double dloss, T* row) {
  const auto share = [&](std::int64_t s) {
    return static_cast<T>(dloss * std::exp(forward[s] + backward[s] - total));
  };
  for (std::int64_t first = threadIdx.x; first <= e.count; first += blockDim.x) {
    // Number 0 is the blank, number i label i - 1.
    if (first == 0) {
      T sum = 0;
      for (std::int64_t s = 0; s < e.places(); s += 2) sum -= share(s);
      row[e.blank] = sum;
      continue;
    }
    const std::int64_t label = e.labels[first - 1];
    bool seen = false;
    for (std::int64_t i = 0; i + 1 < first; ++i) seen = seen || e.labels[i] == label;
    if (seen) continue;
    T sum = 0;
    for (std::int64_t i = first - 1; i < e.count; ++i) {
      if (e.labels[i] == label) sum -= share(2 * i + 1);
    }
    row[label] = sum;
  }
  __syncthreads();
}

// Workspace: for each example the forward rows of all times, and two backward rows.
template <typename T>
__global__ void __launch_bounds__(kCtcThreads)
    ctc_gradients(const CtcCall<T> a, const T* dlosses, T* dscores) {
  const CtcExample<T> e = own_example(a);
  const bool sound = is_sound(a, e);
  T* const to = dscores + std::int64_t{blockIdx.x} * a.classes;
  const T filled = sound ? T{0} : static_cast<T>(not_a_number());
  for (std::int64_t i = threadIdx.x; i < a.most_times * a.classes; i += blockDim.x) {
    to[i / a.classes * e.stride + i % a.classes] = filled;
  }
  const auto dloss = static_cast<double>(dlosses[blockIdx.x]);
  if (!sound || dloss == 0.0) return;
  const std::int64_t width = a.most_places();
  double* const forward = a.workspace + std::int64_t{blockIdx.x} * (a.most_times + 2) * width;
  double* const backward = forward + a.most_times * width;
  __syncthreads();  // the gradients are filled
  for (std::int64_t time = 0; time < e.times; ++time) {
    step_forward(e, time, forward + (time == 0 ? 0 : time - 1) * width, forward + time * width);
  }
  const double total = log_probability(e, forward + (e.times == 0 ? 0 : e.times - 1) * width);
  for (std::int64_t time = e.times - 1; time >= 0; --time) {
    double* const now = backward + time % 2 * width;
    step_backward(e, time, backward + (time + 1) % 2 * width, now);
    add_shares(e, forward + time * width, now, total, dloss, to + time * e.stride);
  }
}

Prepared prepare_ctc_loss(const PrepareArgs& args) {
  const std::int64_t places = 2 * args.inputs[1].shape()[1] + 1;
  const auto rows = static_cast<std::size_t>(2 * args.inputs[0].shape()[1] * places);
  return {.workspace_bytes = rows * sizeof(double), .state = nullptr};
}

Prepared prepare_ctc_grad(const PrepareArgs& args) {
  const Shape& scores = args.inputs[1].shape();
  const std::int64_t places = 2 * args.inputs[2].shape()[1] + 1;
  const auto rows = static_cast<std::size_t>(scores[1] * (scores[0] + 2) * places);
  return {.workspace_bytes = rows * sizeof(double), .state = nullptr};
}

Grid example_grid(std::int64_t examples) {
  return {.blocks = team_blocks(examples, 1), .threads = dim3(kCtcThreads)};
}

template <typename T>
void ctc_loss(const RunArgs& args) {
  const CtcCall<T> call = ctc_call<T>(args, 0);
  launch(args.call, example_grid(call.examples), ctc_losses<T>, call, args.outputs[0].as<T>());
}

template <typename T>
void ctc_loss_grad(const RunArgs& args) {
  const CtcCall<T> call = ctc_call<T>(args, 1);
  launch(args.call, example_grid(call.examples), ctc_gradients<T>, call,
         args.inputs[0].as<const T>(), args.outputs[0].as<T>());
}

}  // namespace

void add_ctc_loss(KernelTable& table) {
  table.add("CtcLoss", DType::kF32,
            {.name = "ctc_loss.cuda", .prepare = prepare_ctc_loss, .run = ctc_loss<float>});
  table.add(
      "CtcLossGrad", DType::kF32,
      {.name = "ctc_loss_grad.cuda", .prepare = prepare_ctc_grad, .run = ctc_loss_grad<float>});
}

}  // namespace trainscope::cuda
