// Memory of a program's values: copies in and out.
#include "engine/exec/program_memory.h"

#include <array>
#include <cstring>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/device_work.h"

namespace trainscope {

ProgramMemory::ProgramMemory(std::shared_ptr<const Program> of,
                             std::shared_ptr<const ProgramMemory> parameters)
    : program_(std::move(of)),
      parameters_(std::move(parameters)),
      device_(program_->device),
      arena_(device_, Space::kDevice, program_->arena().bytes),
      host_arena_(device_, Space::kHost, program_->space(Space::kHost).bytes) {
  const Program& program = *program_;
  for (const PlannedBuffer& buffer : program.buffers) {
    bases_.push_back(base_of(buffer));
  }
  views_.resize(program.graph.value_capacity());
  for (ValueId id : program.graph.live_values()) {
    by_name_.emplace(program.graph.value(id).name, id);
    TensorView& view = views_[static_cast<std::size_t>(id)];
    view = {.type = program.graph.value(id).type, .data = nullptr};
    if (program.keeps(id)) view.data = address(program.place(id).buffer) + program.place(id).offset;
  }
}

std::byte* ProgramMemory::base_of(const PlannedBuffer& buffer) const {
  if (!buffer.external) return arena(buffer.space).data() + buffer.offset;
  // Views of an external parameter share its bytes: the buffer carries the parameter's name.
  CHECK_INVARIANT(parameters_ != nullptr && parameters_->device_ == device_);
  return static_cast<std::byte*>(parameters_->view(buffer.label).data);
}

void ProgramMemory::copy_in(ValueId value, const void* from, std::size_t bytes) {
  const CopyEvent event{.value = value, .bytes = static_cast<std::int64_t>(bytes)};
  listeners_->tell([&](ExecutionEvents& each) { each.copy_begin(event); });
  copy_and_wait(*device_, views_[static_cast<std::size_t>(value)].data, from, bytes);
  listeners_->tell([&](ExecutionEvents& each) { each.copy_end(event); });
}

void ProgramMemory::copy_out(ValueId value, std::size_t offset, std::span<std::byte> to) const {
  const CopyEvent event{
      .kind = CopyKind::kRead, .value = value, .bytes = static_cast<std::int64_t>(to.size())};
  const auto* from = static_cast<const std::byte*>(views_[static_cast<std::size_t>(value)].data);
  listeners_->tell([&](ExecutionEvents& each) { each.copy_begin(event); });
  copy_and_wait(*device_, to.data(), from + offset, to.size());
  listeners_->tell([&](ExecutionEvents& each) { each.copy_end(event); });
}

void ProgramMemory::load_initial() {
  for (ValueId id : program_->graph.live_values()) {
    const Value& value = program_->graph.value(id);
    if (value.kind == ValueKind::kNode || value.kind == ValueKind::kInput) continue;
    const PlannedBuffer* buffer = program_->buffer_of(id);
    if (buffer == nullptr || buffer->external || value.type.bytes() == 0) continue;
    auto* to = static_cast<std::byte*>(views_[static_cast<std::size_t>(id)].data);
    const CopyEvent event{.kind = CopyKind::kInitial,
                          .value = id,
                          .bytes = static_cast<std::int64_t>(value.type.bytes())};
    listeners_->tell([&](ExecutionEvents& each) { each.copy_begin(event); });
    if (value.data) {
      check(device_->copy(kComputeStream, to, value.data->data(), value.type.bytes()));
    } else {
      check(device_->fill(kComputeStream, to, std::byte{0}, value.type.bytes()));
    }
    listeners_->tell([&](ExecutionEvents& each) { each.copy_end(event); });
  }
  check(device_->synchronize(device_->record(kComputeStream)));
}

// These run in a step: a message is made only when it is needed.
TensorView ProgramMemory::view(ValueId value) const {
  const TensorView& view = views_[static_cast<std::size_t>(value)];
  if (view.data != nullptr || view.type.bytes() == 0) return view;
  fail(ErrorCode::kUsage, "the program keeps no bytes for '{}'",
       printable(program_->graph.value(value).name));
}

ValueId ProgramMemory::find(std::string_view value_name) const {
  auto found = by_name_.find(value_name);
  return found == by_name_.end() ? kNoValue : found->second;
}

TensorView ProgramMemory::view(std::string_view value_name) const {
  ValueId id = find(value_name);
  if (id != kNoValue) return view(id);
  fail(ErrorCode::kUsage, "the program has no value '{}'", printable(value_name));
}

bool ProgramMemory::has(std::string_view value_name) const { return kept(value_name) != kNoValue; }

ValueId ProgramMemory::kept(std::string_view value_name) const {
  const ValueId id = find(value_name);
  return id != kNoValue && program_->keeps(id) ? id : kNoValue;
}

void ProgramMemory::write(std::string_view value_name, const Tensor& elements) {
  (void)view(value_name);  // or there is none
  write(find(value_name), elements);
}

void ProgramMemory::write(ValueId value, const Tensor& elements) {
  const TensorView to = view(value);
  if (to.type != elements.type()) {
    fail(ErrorCode::kBadInput, "'{}' must be {}, is {}",
         printable(program_->graph.value(value).name), type_text(to.type),
         type_text(elements.type()));
  }
  copy_in(value, elements.data(), elements.bytes());
}

void ProgramMemory::write_scalar(ValueId value, double number) {
  const TensorView to = view(value);
  const auto put = [&](auto element) { copy_in(value, &element, sizeof(element)); };
  switch (to.type.dtype) {
    case DType::kF64:
      return put(number);
    case DType::kF32:
      return put(static_cast<float>(number));
    case DType::kI64:
      return put(static_cast<std::int64_t>(number));
    case DType::kI32:
      return put(static_cast<std::int32_t>(number));
    default:
      fail(ErrorCode::kUsage, "'{}' is {}: no scalar can be written",
           printable(program_->graph.value(value).name), type_text(to.type));
  }
}

Tensor ProgramMemory::read(std::string_view value_name) const {
  Tensor tensor(type(value_name));
  read_into(value_name, tensor);
  return tensor;
}

void ProgramMemory::read_into(std::string_view value_name, Tensor& elements) const {
  const TensorView from = view(value_name);
  if (elements.type() != from.type) elements = Tensor(from.type);
  copy_out(find(value_name), 0, {elements.data(), elements.bytes()});
}

void ProgramMemory::read_bytes(ValueId value, std::uint64_t offset,
                               std::span<std::byte> bytes) const {
  const TensorView from = view(value);
  CHECK_INVARIANT(offset + bytes.size() <= from.type.bytes());
  copy_out(value, offset, bytes);
}

double ProgramMemory::read_scalar(ValueId value) const {
  std::array<std::byte, sizeof(double)> bytes;
  const DType dtype = view(value).type.dtype;
  read_bytes(value, 0, std::span(bytes).first(size_of(dtype)));
  const auto as = [&bytes]<typename T>(T element) {
    std::memcpy(&element, bytes.data(), sizeof(T));
    return static_cast<double>(element);
  };
  switch (dtype) {
    case DType::kF64:
      return as(double{});
    case DType::kF32:
      return as(float{});
    case DType::kBF16:
      return as(BFloat16{});
    case DType::kF16:
      return as(Float16{});
    default:
      fail(ErrorCode::kUsage, "'{}' is {}: no float", printable(program_->graph.value(value).name),
           type_text(program_->graph.value(value).type));
  }
}

double ProgramMemory::read_scalar(std::string_view value_name) const {
  const ValueId id = find(value_name);
  if (id != kNoValue) return read_scalar(id);
  fail(ErrorCode::kUsage, "the program has no value '{}'", printable(value_name));
}

const TensorType& ProgramMemory::type(std::string_view value_name) const {
  (void)view(value_name);
  return program_->graph.value(find(value_name)).type;
}

}  // namespace trainscope
