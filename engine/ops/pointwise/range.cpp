// Op row: Range.
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/core/text.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// ceil((limit - start) / delta), at least 0. Unsigned, because the difference of two integers may
// need 64 bits.
std::uint64_t integers_in_range(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  const auto low = static_cast<std::uint64_t>(delta > 0 ? start : limit);
  const auto high = static_cast<std::uint64_t>(delta > 0 ? limit : start);
  const bool empty = delta > 0 ? limit <= start : limit >= start;
  if (empty) return 0;
  const auto step = delta > 0 ? static_cast<std::uint64_t>(delta)
                              : std::uint64_t{0} - static_cast<std::uint64_t>(delta);
  return (high - low - 1) / step + 1;
}

double numbers_in_range(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  return count > 0.0 ? count : 0.0;
}

Types range_shape(const OpArgs& args) {
  const DType dtype = args.type(0).dtype;
  require_number(args, 0);
  require_same_dtypes(args);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  double bounds[3] = {};
  for (int i = 0; i < 3; ++i) {
    bounds[i] = args.constant_number(i, 0.0);
    require(std::isfinite(bounds[i]), ErrorCode::kBadInput, "input {} is {}", i, bounds[i]);
  }
  require(bounds[2] != 0.0, ErrorCode::kBadInput, "input 2, the step of the range, is 0");
  const double count =
      is_float(dtype)
          ? numbers_in_range(bounds[0], bounds[1], bounds[2])
          : static_cast<double>(integers_in_range(
                args.constant_ints(0)[0], args.constant_ints(1)[0], args.constant_ints(2)[0]));
  require(count <= static_cast<double>(kMost), ErrorCode::kBadInput,
          "the range from {} to {} by {} has too many elements", bounds[0], bounds[1], bounds[2]);
  return {{.dtype = dtype, .shape = Shape{static_cast<std::int64_t>(count)}}};
}

}  // namespace

std::vector<OpDef> range_ops() {
  return {
      {.name = "Range",
       .doc =
           "start, start + delta, ... as long as they are before the limit; inputs start, limit, "
           "delta must be known when the graph is built",
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = range_shape,
       .cost = copies_output,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"[]={1}, []={5}, []={2}", "[]={10}, []={4}, []={-2.5}",
                    "[]={1}, []={1}, []={1}", "i64[]={0}, i64[]={100000}, i64[]={1}",
                    "i32[]={10}, i32[]={6}, i32[]={-3}", "i64[1]={3}, i64[1]={9}, i64[1]={-1}"}},
  };
}

}  // namespace trainscope
