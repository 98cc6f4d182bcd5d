// A sum that follows what is bound and freed.
#include "engine/run/bound_bytes.h"

#include <utility>

namespace trainscope {
namespace {

bool is_in_arena(const PlannedBuffer& buffer) {
  return buffer.space == Space::kDevice && !buffer.external;
}

}  // namespace

BoundBytes::BoundBytes(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  for (const PlannedBuffer& buffer : program_->buffers) {
    if (buffer.persistent && is_in_arena(buffer)) persistent_bytes_ += buffer.bytes;
  }
  begin();
}

void BoundBytes::begin() {
  bytes_ = persistent_bytes_;
  has_bound_ = false;
}

void BoundBytes::add(std::span<const BufferId> buffers) {
  bytes_ += bytes_of(buffers);
  has_bound_ = true;
}

bool BoundBytes::remove(std::span<const BufferId> buffers) {
  if (has_bound_) bytes_ -= bytes_of(buffers);
  return has_bound_;
}

std::int64_t BoundBytes::bytes_of(std::span<const BufferId> buffers) const {
  std::int64_t bytes = 0;
  for (const BufferId id : buffers) {
    const PlannedBuffer& buffer = program_->buffers[static_cast<std::size_t>(id)];
    if (is_in_arena(buffer)) bytes += buffer.bytes;
  }
  return bytes;
}

}  // namespace trainscope
