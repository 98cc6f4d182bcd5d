// What the values of a program hold in a step that runs one call at a time: each as its calls left
// it, whatever became of its bytes since.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/exec/executor.h"
#include "engine/ir/builder.h"

namespace trainscope {

class CallValues {
 public:
  // Loads the executor's initial elements, and `inputs` by name. `evaluate` makes values that no
  // call makes: views, and those inside of others.
  CallValues(Executor& executor, const std::map<std::string, Tensor>& inputs,
             const Evaluate& evaluate);

  // Null: nothing has made it yet, or it is not known.
  const Tensor* find(ValueId value) const { return values_[index(value)].get(); }
  // No reference kernel makes this value that no call makes, or one that it is made of.
  bool is_unknown(ValueId value) const { return unknown_[index(value)]; }
  // Makes the values that no call makes, of nodes before that of the call.
  void make_before(CallId call);
  // Copies what the call has just made. A value that batch tiles make is there with its last slice.
  void note_outputs(CallId call);
  // States have been given what their updates of the micro-step are.
  void begin_update();

 private:
  struct Pieces {
    Tensor tensor;
    std::size_t done = 0;  // bytes
  };
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }
  void give(const std::map<std::string, Tensor>& inputs);
  void find_silent_nodes();
  void note_output(CallId call, std::size_t output);
  bool make(NodeId node);

  Executor& executor_;
  const Program& program_;
  const Evaluate& evaluate_;
  std::vector<SharedTensor> values_;                 // by ValueId
  std::vector<bool> unknown_;                        // by ValueId
  std::unordered_map<std::int32_t, Pieces> pieces_;  // by ValueId, of those that are not whole
  std::vector<std::size_t> position_;                // by NodeId, in the order of execution
  std::vector<NodeId> silent_;                       // without calls, in that order
  std::size_t next_silent_ = 0;
  std::vector<NodeId> due_;  // of these, before the present call and not made yet
};

}  // namespace trainscope
