// What the host of a rank tells the others: numbers, texts, tensors. A channel that fails throws.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "kernels/api/communicator.h"

namespace trainscope {

// These functions take a channel between hosts. They throw kDistributed with the channel's failure.

// The numbers of all ranks, in their order. Each gives as many.
void gather(Communicator& ranks, std::span<const double> mine, std::span<double> all);
// Whether it is true on every rank.
bool true_on_all(Communicator& ranks, bool mine);
// Rank 0's, on every rank.
std::string text_of_rank_0(Communicator& ranks, std::string mine);
std::vector<std::int64_t> numbers_of_rank_0(Communicator& ranks, std::vector<std::int64_t> mine);
// Rank 0's elements go to every rank.
void send_from_rank_0(Communicator& ranks, Tensor& tensor);

}  // namespace trainscope
