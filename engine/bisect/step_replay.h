// A step of a recorded run node by node, each node on the run's own inputs: what a node makes of
// them by definition, in f64, beside what the run has there.
//
// Where the trace has all elements of a value, these go on to its readers, so that an error is seen
// at the node that makes it and nowhere else. Where it has a sketch, ours go on as long as they are
// within the limit; behind a value that is not nothing can be said until elements come again.
//
// The limit of an error is 8 times the larger of: what the run's own precision makes of the same
// inputs; what a relative error of 2^-24 in each input element makes of the result, twice with
// opposite signs; 2^-23 of the result (of types of two bytes their own rounding). Gradients add
// 8 * 1e-8 of the norm of all of the step's. What the optimizer made of a parameter has 1.5 * 2^-23
// of the parameter and 8 times what rounding of gradients and moments makes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/local_fault.h"
#include "engine/bisect/observed.h"

namespace trainscope {

// How far the values of a replay are those of the run.
enum class Trust : std::uint8_t {
  kElements,  // made of its own elements
  kAgrees,    // made of ours, where its sketches are within limits of ours
  kUnknown,   // it differs from ours, and we do not have its elements
};

// What a part of a step begins with, by value name: batch, parameters, states and scalars. What is
// not in it has the elements that the model begins with.
struct ReplayInputs {
  std::map<std::string, Tensor> tensors = {};
  // How far an element of ours is from the run's in the mean; of names that are not in it: not at
  // all.
  std::map<std::string, double> apart = {};
  std::map<std::string, Trust> trust = {};  // of names that are not in it: kElements
};

class StepReplay {
 public:
  // `limit_of`: what a row may differ from ours relative to its norm because of all that comes
  // before it; it counts where inputs are not the run's own elements.
  using LimitOf = std::function<double(std::size_t row)>;
  // `rounding`: of results relative to their norms, where it is more than that of their types.
  StepReplay(const DefinedStep& step, const profiler::IndexedTrace& run, LimitOf limit_of,
             double rounding);

  // The forward and backward phase of a micro-batch.
  void run_micro_step(std::int64_t step, std::int64_t micro_batch, const ReplayInputs& inputs);
  // The update by the mean gradient of the step's micro-batches that ran before, on parameters and
  // states of the last one.
  void run_update(std::int64_t step, const ReplayInputs& inputs);

  const std::vector<LocalFault>& faults() const { return faults_; }
  // How many tensors were judged.
  std::int64_t judged() const { return judged_; }
  // Of a parameter or state, by name, what the step made of it, as far as it ran; null: nothing.
  const Tensor* next_of(const std::string& name) const;
  Trust trust_of_next(const std::string& name) const;

 private:
  using Values = std::vector<SharedTensor>;
  struct Seen {
    std::shared_ptr<const Observed> observed = nullptr;
    std::size_t row = 0;
  };
  struct Judged {
    double error = 0.0;  // norms, not relative
    double limit = 0.0;
    double norm = 0.0;
    bool is_special = false;  // NaN, infinities or the number of elements are not in both alike

    bool is_within() const { return !is_special && error <= limit; }
  };
  struct Row {
    std::string key;
    Seen seen;
    bool is_next = false;  // of a parameter or state after the step
    Judged judged = {};
  };

  void begin(const ReplayInputs& inputs, bool is_update);
  void run_single(const ReplayInputs& inputs);
  void run_node(NodeId id);
  void settle(ValueId out, Trust trust);
  // A row of the step for a key; of what comes after the step those of its update.
  Seen find(const std::string& key, bool next);
  Judged judge(ValueId out, Trust trust, const Row& of);
  void take_over(ValueId out, const Seen& seen, Trust trust, bool within);
  // `alone`: other rows of the value are within their limits.
  void add_fault(ValueId out, const Row& of, bool alone);
  std::vector<NodeId> cone_of(ValueId out) const;
  SharedTensor mean_with(Tensor& sum, const Tensor& tensor) const;
  void average_gradients();
  std::array<Values*, 3> replays() { return {&truth_, &perturbed_[0], &perturbed_[1]}; }
  const Graph& graph() const { return step_.truth().graph(); }

  const DefinedStep& step_;
  const profiler::IndexedTrace& run_;
  const LimitOf limit_of_;
  const double rounding_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> position_;  // in it, by NodeId

  std::int64_t at_ = 0;  // step
  std::int64_t micro_batch_ = 0;
  double all_gradients_ = 0.0;  // their norm in the step
  std::unordered_map<std::string, Seen> seen_;
  std::unordered_map<std::string, SharedTensor> single_;  // by key
  Values truth_;                                          // by ValueId
  Values perturbed_[2];
  std::vector<Trust> trust_;
  std::int64_t nodes_done_ = 0;  // in the step
  std::vector<bool> leaf_;       // the run's own, or given: a cone ends there
  // A gradient over the step's micro-batches: ours, and the two perturbed ones.
  struct GradientSum {
    std::vector<Tensor> sums;
    Trust trust = Trust::kElements;  // the least
  };
  std::map<ValueId, GradientSum> gradient_sums_;
  std::int64_t micro_batches_done_ = 0;

  std::vector<LocalFault> faults_;
  std::int64_t judged_ = 0;
  std::map<std::string, ValueId> next_;  // by state name
};

}  // namespace trainscope
