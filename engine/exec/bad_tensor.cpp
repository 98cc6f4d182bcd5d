// Counts NaN and infinity in the device's memory, piece by piece.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/exec/device_work.h"
#include "engine/exec/executor.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// Elements are looked at in pieces of so many bytes: a copy of the largest tensor may not fit.
constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

template <typename T>
void count_bad_elements(std::span<const std::byte> bytes, BadTensor& bad) {
  const T* data = reinterpret_cast<const T*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const Computed<T> number = data[i];
    if (std::isnan(number)) ++bad.nan;
    if (std::isinf(number) && number > Computed<T>{0}) ++bad.infinite;
  }
}

void count_bad_elements(DType dtype, std::span<const std::byte> bytes, BadTensor& bad) {
  if (dtype == DType::kF32) count_bad_elements<float>(bytes, bad);
  if (dtype == DType::kF64) count_bad_elements<double>(bytes, bad);
  if (dtype == DType::kBF16) count_bad_elements<BFloat16>(bytes, bad);
  if (dtype == DType::kF16) count_bad_elements<Float16>(bytes, bad);
}

// Of a tensor at an address of the device.
void count_bad(Device& device, const TensorView& view, BadTensor& bad) {
  std::vector<std::byte> piece(std::min(kPieceBytes, view.type.bytes()));
  bad.elements = view.elements();
  for (std::size_t at = 0; at < view.type.bytes(); at += piece.size()) {
    const std::span now(piece.data(), std::min(piece.size(), view.type.bytes() - at));
    copy_and_wait(device, now.data(), static_cast<const std::byte*>(view.data) + at, now.size());
    count_bad_elements(view.type.dtype, now, bad);
  }
}

}  // namespace

// What a step starts from: inputs, parameters and states, without those states that forward and
// backward themselves overwrite (running statistics, sums of gradients).
std::vector<ValueId> Executor::given_values() const {
  std::vector<ValueId> given;
  for (ValueId id : program_->graph.live_values()) {
    const ValueKind kind = program_->graph.value(id).kind;
    if (kind == ValueKind::kNode || kind == ValueKind::kConstant) continue;
    bool overwritten = std::ranges::any_of(program_->graph.updates, [&](const Update& u) {
      NodeId producer = program_->graph.value(u.value).producer;
      return u.state == id && producer != kNoNode &&
             program_->graph.node(producer).phase != Phase::kUpdate;
    });
    if (!overwritten && memory_.address(id).data != nullptr) given.push_back(id);
  }
  return given;
}

std::optional<BadTensor> Executor::find_bad_tensor() {
  for (ValueId id : given_values()) {
    const Value& value = program_->graph.value(id);
    const TensorView& view = memory_.address(id);
    BadTensor bad{.value = value.name, .node = {}, .op = std::string(name_of(value.kind))};
    count_bad(memory_.device(), view, bad);
    if (bad.nan + bad.infinite > 0) return bad;
  }
  std::optional<BadTensor> first_infinite;
  rewind();
  while (cursor_ < program_->update_begin) {
    const CallId begin = cursor_;
    const NodeId node = program_->call(begin).node;
    do {  // all batch tiles
      run_call(cursor_);
      cursor_ = CallId(static_cast<std::int32_t>(cursor_) + 1);
    } while (cursor_ < program_->update_begin && program_->call(cursor_).node == node);
    meet_streams();  // a transfer is read as soon as it is done
    for (const BadTensor& bad : bad_results(begin, cursor_)) {
      if (bad.nan > 0) {
        rewind();
        return bad;
      }
      if (!first_infinite) first_infinite = bad;
    }
  }
  rewind();
  return first_infinite;
}

// By output of the node whose calls these are: those that have bad elements, in all tiles together.
std::vector<BadTensor> Executor::bad_results(CallId begin, CallId end) const {
  const Call& first = program_->call(begin);
  const bool computes = first.kind != CallKind::kStateCopy && first.kind != CallKind::kAddPartials;
  std::vector<BadTensor> found;
  for (std::size_t k = 0; computes && k < first.outputs.size(); ++k) {
    if (first.outputs[k].value == kNoValue) continue;
    const Node& node = program_->graph.node(first.node);
    BadTensor bad{.value = program_->graph.value(first.outputs[k].value).name,
                  .node = node.name,
                  .op = std::string(node.op->name)};
    for (CallId id = begin; id < end; id = CallId(static_cast<std::int32_t>(id) + 1)) {
      if (program_->call(id).kind != first.kind) continue;
      count_bad(memory_.device(), calls_.outputs(id)[k], bad);
    }
    bad.elements = program_->graph.value(first.outputs[k].value).type.elements();
    if (bad.nan + bad.infinite > 0) found.push_back(std::move(bad));
  }
  return found;
}

}  // namespace trainscope
