// In which order to run the ops of a step: what they make and read decides which bytes are alive.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainscope::memplan {

struct OrderValue {
  std::int64_t bytes = 0;
  bool kept = false;  // needed after the last op

  friend bool operator==(const OrderValue&, const OrderValue&) = default;
};

// `made` takes over the bytes of `read` where the op is the last one that reads these.
struct OrderInPlace {
  std::int32_t read = 0;
  std::int32_t made = 0;
};

struct OrderOp {
  std::vector<std::int32_t> reads = {};  // values, each once
  std::vector<std::int32_t> makes = {};  // values, each once
  std::vector<std::int32_t> after = {};  // ops that must run before it, whatever it reads
  std::vector<OrderInPlace> in_place = {};
  std::int64_t workspace_bytes = 0;
  std::int32_t phase = 0;  // all ops of a phase run before those of the next
};

// Ops stand in an order that works. A value that no op makes is there from the start, if anything
// needs it.
struct OrderProblem {
  std::vector<OrderValue> values = {};
  std::vector<OrderOp> ops = {};
};

// What makes `problem` meaningless (an op before what it needs, a value made twice, negative bytes,
// sums beyond int64, ...), or nothing. Everything below needs it clean.
[[nodiscard]] std::optional<std::string> find_order_problem_error(const OrderProblem& problem);

// Bytes alive while each op runs, by position in `order`, which names each op once. A value is
// alive from the op that makes it to the last one that reads it.
[[nodiscard]] std::vector<std::int64_t> order_profile(const OrderProblem& problem,
                                                      std::span<const std::int32_t> order);
[[nodiscard]] std::int64_t order_peak_bytes(const OrderProblem& problem,
                                            std::span<const std::int32_t> order);

// Why the ops cannot run in this order, or nothing.
[[nodiscard]] std::optional<std::string> find_order_error(const OrderProblem& problem,
                                                          std::span<const std::int32_t> order);

}  // namespace trainscope::memplan
