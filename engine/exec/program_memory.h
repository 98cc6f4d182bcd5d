// The memory of a program's values. Nobody outside of engine/exec knows where they lie: they are
// read and written by copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/exec/arena.h"
#include "engine/exec/execution_events.h"
#include "engine/plan/program.h"

namespace trainscope {

class ProgramMemory {
 public:
  // `parameters` gives the storage of external values, by name; null: there are none.
  ProgramMemory(std::shared_ptr<const Program> program,
                std::shared_ptr<const ProgramMemory> parameters);

  // Initial elements of parameters and states, and the constants, go into the arena.
  void load_initial();

  bool has(std::string_view value_name) const;
  // The value of that name; kNoValue where the program has none or keeps no bytes for it.
  ValueId kept(std::string_view value_name) const;
  // These fail with kUsage when the program has no such value or keeps no bytes for it.
  const TensorType& type(std::string_view value_name) const;
  // Copies the elements in; fails with kBadInput when the type differs.
  void write(std::string_view value_name, const Tensor& elements);
  void write(ValueId value, const Tensor& elements);
  // A scalar of f32, f64, i32 or i64, as the value is.
  void write_scalar(ValueId value, double number);
  Tensor read(std::string_view value_name) const;
  // ... into a tensor, without allocating when it is of the value's type already.
  void read_into(std::string_view value_name, Tensor& elements) const;
  // Bytes of the value, from `offset` on.
  void read_bytes(ValueId value, std::uint64_t offset, std::span<std::byte> bytes) const;
  // The first element of a float value.
  double read_scalar(ValueId value) const;
  double read_scalar(std::string_view value_name) const;

  Device& device() const { return *device_; }
  bool guard_intact() const { return arena_.guard_intact() && host_arena_.guard_intact(); }
  // Who is told of copies, and of what the executor does.
  const ExecutionListeners& listeners() const { return *listeners_; }
  const std::shared_ptr<ExecutionListeners>& shared_listeners() const { return listeners_; }

 private:
  // Those who give addresses to the device.
  friend class Executor;
  friend class MemoryCheck;

  const Arena& arena(Space space) const { return space == Space::kHost ? host_arena_ : arena_; }
  // The value at its address of the device; null where the program keeps no bytes for it.
  const TensorView& address(ValueId value) const { return views_[static_cast<std::size_t>(value)]; }
  // Where a buffer begins.
  std::byte* address(BufferId buffer) const { return bases_[static_cast<std::size_t>(buffer)]; }
  std::byte* base_of(const PlannedBuffer& buffer) const;
  void copy_in(ValueId value, const void* from, std::size_t bytes);
  void copy_out(ValueId value, std::size_t offset, std::span<std::byte> to) const;
  ValueId find(std::string_view value_name) const;  // kNoValue when there is none
  TensorView view(ValueId value) const;
  TensorView view(std::string_view value_name) const;

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const ProgramMemory> parameters_;
  const DeviceHandle device_;
  Arena arena_;
  Arena host_arena_;
  std::unordered_map<std::string_view, ValueId>
      by_name_;                    // looked up without allocating, unlike Graph's
  std::vector<std::byte*> bases_;  // by BufferId: addresses of the device
  std::vector<TensorView> views_;  // by ValueId: the same
  const std::shared_ptr<ExecutionListeners> listeners_ = std::make_shared<ExecutionListeners>();
};

}  // namespace trainscope
