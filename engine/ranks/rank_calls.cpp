// Collectives on the host, with errors thrown.
#include "engine/ranks/rank_calls.h"

#include <algorithm>

namespace trainscope {
namespace {

void check_told(const DeviceStatus& status) {
  require(status.done(), ErrorCode::kDistributed, "{}", status.message);
}

}  // namespace

void gather(Communicator& ranks, std::span<const double> mine, std::span<double> all) {
  CHECK_INVARIANT(all.size() == mine.size() * static_cast<std::size_t>(ranks.size()));
  check_told(ranks.all_gather({}, mine.data(), all.data(), std::ssize(mine), DType::kF64));
}

bool true_on_all(Communicator& ranks, bool mine) {
  std::int32_t count = mine ? 1 : 0;
  check_told(ranks.all_reduce({}, &count, &count, 1, DType::kI32));
  return count == ranks.size();
}

std::vector<std::int64_t> numbers_of_rank_0(Communicator& ranks, std::vector<std::int64_t> mine) {
  check_told(ranks.broadcast({}, mine.data(), std::ssize(mine), DType::kI64, 0));
  return mine;
}

std::string text_of_rank_0(Communicator& ranks, std::string mine) {
  const std::int64_t length = numbers_of_rank_0(ranks, {std::ssize(mine)}).front();
  mine.resize(static_cast<std::size_t>(length));
  check_told(ranks.broadcast({}, mine.data(), length, DType::kU8, 0));
  return mine;
}

void send_from_rank_0(Communicator& ranks, Tensor& tensor) {
  check_told(ranks.broadcast({}, tensor.data(), tensor.type().elements(), tensor.dtype(), 0));
}

}  // namespace trainscope
