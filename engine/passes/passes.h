// Every pass that exists, one function each; engine/passes.def gives their order.
#pragma once

#include <vector>

#include "engine/passes/pass.h"

namespace trainscope {

Pass training_form_pass();
Pass fold_constants_pass();
Pass simplify_pass();
Pass common_subexpression_pass();
Pass dead_code_pass();
Pass decompose_pass();
Pass loss_pass();
Pass chunked_loss_pass();
Pass transposed_products_pass();

}  // namespace trainscope
