// A run's memory is made on the host, guards and all, copied to the device and back.
#include "tests/device/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/plan/kernel_call.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kUnit = 256;  // bytes: of offsets, and at least of each guard
constexpr std::byte kGuard{0xC3};

// The bytes of all tensors of a run, each between guards.
class Image {
 public:
  Image(const OpCase& op_case, const DeviceRunOptions& options)
      : case_(op_case), options_(options) {
    for (std::size_t i = 0; i < op_case.inputs().size(); ++i) {
      const Tensor& tensor = op_case.inputs()[i];
      inputs_.push_back(add(tensor.bytes(), shift_of(tensor.dtype())));
    }
    for (std::size_t k = 0; k < op_case.outputs().size(); ++k) {
      const int input = input_of(static_cast<int>(k));
      const TensorType& type = op_case.outputs()[k];
      outputs_.push_back(input >= 0 ? inputs_[static_cast<std::size_t>(input)]
                                    : add(type.bytes(), shift_of(type.dtype)));
    }
  }
  // Aligned always, as kernel.h says.
  void add_workspace(std::size_t bytes) { workspace_ = add(bytes, 0); }

  // What the device's memory holds before the run.
  std::vector<std::byte> before() const {
    std::vector<std::byte> bytes(end_ + kUnit, kGuard);
    for (const Range& range : outputs_) {
      std::fill_n(bytes.data() + range.begin, range.bytes, options_.poison);
    }
    std::fill_n(bytes.data() + workspace_.begin, workspace_.bytes, options_.poison);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].bytes == 0) continue;
      std::memcpy(bytes.data() + inputs_[i].begin, case_.inputs()[i].data(), inputs_[i].bytes);
    }
    return bytes;
  }

  std::vector<TensorView> input_views(std::byte* base) const {
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      views.push_back({.type = case_.has(i) ? case_.inputs()[i].type() : TensorType{},
                       .data = address(base, inputs_[i]),
                       .present = case_.has(i)});
    }
    return views;
  }
  std::vector<TensorView> output_views(std::byte* base) const {
    std::vector<TensorView> views;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      views.push_back({.type = case_.outputs()[k], .data = address(base, outputs_[k])});
    }
    return views;
  }
  void* workspace(std::byte* base) const { return address(base, workspace_); }

  std::vector<Tensor> outputs(const std::vector<std::byte>& after) const {
    std::vector<Tensor> tensors;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      tensors.emplace_back(case_.outputs()[k]);
      if (outputs_[k].bytes == 0) continue;
      std::memcpy(tensors.back().data(), after.data() + outputs_[k].begin, outputs_[k].bytes);
    }
    return tensors;
  }

  // Bytes that changed outside of outputs and workspace.
  std::vector<std::string> faults(const std::vector<std::byte>& before,
                                  std::vector<std::byte> after) const {
    const auto forgive = [&](const Range& range) {
      std::copy_n(before.data() + range.begin, range.bytes, after.data() + range.begin);
    };
    for (const Range& range : outputs_) forgive(range);
    forgive(workspace_);
    const auto [was, is] = std::mismatch(before.begin(), before.end(), after.begin());
    if (was == before.end()) return {};
    return {place(static_cast<std::size_t>(was - before.begin()))};
  }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };

  std::size_t shift_of(DType dtype) const { return options_.shifted ? size_of(dtype) : 0; }
  Range add(std::size_t bytes, std::size_t shift) {
    const std::size_t begin = (end_ + kUnit - 1) / kUnit * kUnit + kUnit + shift;
    end_ = begin + bytes;
    return {.begin = begin, .bytes = bytes};
  }
  int input_of(int output) const {
    const auto shared = std::ranges::find(options_.in_place, output, &InPlace::output);
    return shared == options_.in_place.end() ? -1 : shared->input;
  }
  static std::byte* address(std::byte* base, const Range& range) {
    return range.bytes == 0 ? nullptr : base + range.begin;
  }
  std::string place(std::size_t at) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (at >= inputs_[i].begin && at < inputs_[i].begin + inputs_[i].bytes) {
        return fmt::format("changes input {}", i);
      }
    }
    return fmt::format("writes outside of its results, at byte {} of {}", at, end_ + kUnit);
  }

  const OpCase& case_;
  const DeviceRunOptions& options_;
  std::size_t end_ = 0;
  std::vector<Range> inputs_;
  std::vector<Range> outputs_;
  Range workspace_;
};

Prepared prepare(const OpCase& op_case, const Kernel& kernel) {
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < op_case.inputs().size(); ++i) {
    const Tensor& tensor = op_case.inputs()[i];
    inputs.push_back({.type = op_case.has(i) ? tensor.type() : TensorType{},
                      .data = op_case.known(i) ? tensor.view().data : nullptr,
                      .present = op_case.has(i)});
  }
  std::vector<TensorView> outputs;
  for (const TensorType& type : op_case.outputs()) outputs.push_back({.type = type});
  return prepared_for(kernel, {.params = op_case.params(), .inputs = inputs, .outputs = outputs});
}

DeviceStatus launch_captured(Device& device, const Kernel& kernel, const RunArgs& args) {
  std::unique_ptr<CapturedWork> work;
  if (DeviceStatus status = device.begin_capture(); !status.done()) return status;
  const DeviceStatus launched = device.launch(kComputeStream, kernel, args);
  const DeviceStatus ended = device.end_capture(&work);
  if (!launched.done()) return launched;
  if (!ended.done()) return ended;
  DeviceStatus replayed = device.replay(*work);
  const DeviceStatus waited = wait_for_all(device);  // before `work` ends
  return replayed.done() ? waited : replayed;
}

}  // namespace

DevicePool::~DevicePool() {
  if (data_ != nullptr) device_.release(Space::kDevice, data_, bytes_);
}

DeviceStatus DevicePool::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return {};
  if (data_ != nullptr) device_.release(Space::kDevice, data_, bytes_);
  data_ = nullptr;
  bytes_ = std::max(bytes, std::size_t{1} << 20);
  DeviceStatus status = device_.allocate(Space::kDevice, bytes_, &data_);
  if (!status.done()) bytes_ = 0;
  return status;
}

DeviceStatus wait_for_all(Device& device) {
  for (const Stream stream : {kTransferStream, kComputeStream}) {
    const DeviceStatus status = device.synchronize(device.record(stream));
    if (!status.done()) return status;
  }
  return {};
}

DeviceRunResult run_on_device(DevicePool& pool, const OpCase& op_case, const Kernel& kernel,
                              const DeviceRunOptions& options) {
  Device& device = pool.device();
  Image image(op_case, options);
  const Prepared prepared = prepare(op_case, kernel);
  if (prepared.workspace_bytes > 0) image.add_workspace(prepared.workspace_bytes);
  const std::vector<std::byte> before = image.before();
  DeviceRunResult result{.status = pool.reserve(before.size())};
  if (!result.status.done()) return result;
  std::byte* base = pool.data();
  const std::vector<TensorView> inputs = image.input_views(base);
  const std::vector<TensorView> outputs = image.output_views(base);
  const RunArgs args{.params = op_case.params(),
                     .inputs = inputs,
                     .outputs = outputs,
                     .workspace = image.workspace(base),
                     .state = prepared.state.get()};
  std::vector<std::byte> after(before.size());
  const auto step = [&](DeviceStatus status) {
    if (result.status.done()) result.status = std::move(status);
  };
  step(device.copy(kComputeStream, base, before.data(), before.size()));
  if (options.captured) {
    step(launch_captured(device, kernel, args));
  } else {
    step(device.launch(kComputeStream, kernel, args));
  }
  step(device.copy(kComputeStream, after.data(), base, after.size()));
  step(wait_for_all(device));
  if (!result.status.done()) return result;
  result.outputs = image.outputs(after);
  result.faults = image.faults(before, std::move(after));
  return result;
}

}  // namespace trainscope::test
