// Rows that come first, and those in their place again: how padding is left out. Each op is the
// other's gradient.
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// x [rows, ...], order [rows], count [], as CompactRows gives the last two.
Types rows_shape(const OpArgs& args) {
  require(args.rank(0) >= 1, ErrorCode::kBadInput, "input 0 is one number, rows are expected");
  require_dtype(args, 1, DType::kI64);
  require_shape(args, 1, {args.shape(0)[0]});
  require_dtype(args, 2, DType::kI64);
  require_rank(args, 2, 0);
  return {args.type(0)};
}

Params fill_params(const OpArgs& args) {
  return FillParams{.value = static_cast<double>(args.attributes.integer("fill", 0))};
}

Values moved_back(const GradArgs& g, std::string_view op) {
  return {g.b(op, {g.dy[0], g.x[1], g.x[2]}), kNoValue, kNoValue};
}

std::vector<std::string_view> examples() {
  return {"[5,3], i64[5]={3,0,4,1,2}, i64[]={3}", "[5,3], i64[5]={3,0,4,1,2}, i64[]={0}",
          "[5,3], i64[5]={3,0,4,1,2}, i64[]={5}", "[4], i64[4]={1,0,3,2}, i64[]={1}",
          "[4,2,3], i64[4]={1,0,3,2}, i64[]={2}", "[4,2], i64[4]={1,0,3,2}, i64[]={9}",
          "[4,2], i64[4]={1,0,3,2}, i64[]={-1}",  "[0,3], i64[0]<1, i64[]={0}",
          "[3,0], i64[3]={2,1,0}, i64[]={2}",     "i64[4]<9, i64[4]={1,0,3,2}, i64[]={2}",
          "[3,4000], i64[3]={2,1,0}, i64[]={2}"};
}

}  // namespace

std::vector<OpDef> packed_rows_ops() {
  std::vector<std::string_view> filled = examples();
  filled.emplace_back("i64[4]<9, i64[4]={1,0,3,2}, i64[]={2}; fill=-100");
  return {
      {.name = "PackRows",
       .doc = "x [rows, ...], order [rows], count: row i is row order[i] of x where i < count, "
              "else `fill`; order names every row once.",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{"fill", "the elements of rows that do not count, an integer (default 0)"}},
       .params = fill_params,
       .shape = rows_shape,
       .gradient = [](const GradArgs& g) -> Values { return moved_back(g, "UnpackRows"); },
       .cost = copies_output,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = std::move(filled)},
      {.name = "UnpackRows",
       .doc = "x [rows, ...], order [rows], count: row order[i] is row i of x where i < count, "
              "else 0; order names every row once.",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = rows_shape,
       .gradient = [](const GradArgs& g) -> Values { return moved_back(g, "PackRows"); },
       .cost = copies_output,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = examples()},
  };
}

}  // namespace trainscope
