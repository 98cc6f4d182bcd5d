// Trips one by one: given values in, the nodes, results out.
#include "engine/exec/reference_body.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/exec/reference.h"

namespace trainscope {
namespace {

class ReferenceTrips {
 public:
  ReferenceTrips(const OpBody& body, const std::vector<const Tensor*>& inputs,
                 const std::vector<TensorType>& outputs)
      : graph_(body.graph), trips_(body.trips), inputs_(inputs) {
    for (const TensorType& type : outputs) results_.emplace_back(type);
    for (const Trips::Carried& each : trips_.carried) carried_[each.to] = given(each.to);
  }

  std::vector<Tensor> run(const Evaluate& evaluate) {
    const std::int64_t wanted = wanted_trips();
    std::int64_t done = 0;
    for (bool another = wanted > 0; another;) {
      const bool has_room = trips_.most < 0 || done < trips_.most;
      require(has_room, ErrorCode::kRunFailed, "there is room for {} trips, the data asks for more",
              trips_.most);
      const std::int64_t number = trips_.backwards ? wanted - 1 - done : done;
      const ReferenceValues values = reference_run(graph_, inputs_of(number), evaluate);
      take(values, number);
      another = ++done < wanted && goes_on(values);
    }
    for (const Trips::Carried& each : trips_.carried) result(each.from) = carried_.at(each.to);
    if (trips_.condition_output >= 0) result(trips_.condition_output) = Tensor::scalar(done);
    return std::move(results_);
  }

 private:
  const Tensor& given(int input) const { return *inputs_[static_cast<std::size_t>(input)]; }
  Tensor& result(int output) { return results_[static_cast<std::size_t>(output)]; }
  const Value& graph_input(int i) const {
    return graph_.value(graph_.inputs[static_cast<std::size_t>(i)]);
  }

  std::int64_t wanted_trips() const {
    if (trips_.trips_input < 0) return 1;
    return std::max<std::int64_t>(0, as_ints(given(trips_.trips_input)).at(0));
  }

  Tensor input_of(int i, std::int64_t number) const {
    if (trips_.is_numbered && i == trips_.trips_input) return Tensor::scalar(number);
    const auto carried = carried_.find(i);
    if (carried != carried_.end()) return carried->second;
    if (!trips_.is_sliced(i)) return given(i);
    Tensor slice(graph_input(i).type);
    const std::byte* from = given(i).data() + static_cast<std::size_t>(number) * slice.bytes();
    if (slice.bytes() > 0) std::memcpy(slice.data(), from, slice.bytes());
    return slice;
  }

  std::map<std::string, Tensor> inputs_of(std::int64_t number) const {
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < static_cast<int>(graph_.inputs.size()); ++i) {
      tensors.emplace(graph_input(i).name, input_of(i, number));
    }
    return tensors;
  }

  const Tensor& output_of(const ReferenceValues& values, int output) const {
    return values.at(graph_.outputs[static_cast<std::size_t>(output)]);
  }

  void take(const ReferenceValues& values, std::int64_t number) {
    for (int i = 0; i < static_cast<int>(results_.size()); ++i) {
      if (i == trips_.condition_output || trips_.carried_to(i) >= 0) continue;
      const Tensor& made = output_of(values, i);
      const std::size_t at = trips_.is_stacked(i) ? static_cast<std::size_t>(number) : 0;
      if (made.bytes() == 0) continue;
      std::memcpy(result(i).data() + at * made.bytes(), made.data(), made.bytes());
    }
    for (const Trips::Carried& each : trips_.carried) {
      carried_[each.to] = output_of(values, each.from);
    }
  }

  bool goes_on(const ReferenceValues& values) const {
    return trips_.condition_output < 0 ||
           output_of(values, trips_.condition_output).values<bool>()[0];
  }

  const Graph& graph_;
  const Trips& trips_;
  const std::vector<const Tensor*>& inputs_;
  std::vector<Tensor> results_;
  std::map<int, Tensor> carried_;  // by input
};

}  // namespace

std::vector<Tensor> reference_trips(const OpBody& body, const std::vector<const Tensor*>& inputs,
                                    const std::vector<TensorType>& outputs,
                                    const Evaluate& evaluate) {
  return ReferenceTrips(body, inputs, outputs).run(evaluate);
}

}  // namespace trainscope
