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
Pass compact_labels_pass();
Pass skip_padding_pass();
Pass fuse_transpose_pass();   // fuse/transpose.cpp
Pass fuse_gelu_pass();        // fuse/gelu.cpp
Pass fuse_silu_pass();        // fuse/silu.cpp
Pass fuse_layer_norm_pass();  // fuse/layer_norm.cpp
Pass fuse_rms_norm_pass();    // fuse/rms_norm.cpp
Pass fuse_softmax_pass();     // fuse/softmax.cpp
Pass fuse_rotary_pass();      // fuse/rotary.cpp
Pass fuse_attention_pass();   // fuse/attention.cpp
Pass fuse_bias_pass();        // fuse/bias.cpp
Pass merge_matmuls_pass();    // fuse/matmuls.cpp
Pass fuse_norm_relu_pass();   // fuse/norm_relu.cpp
Pass scattered_sums_pass();
Pass fuse_norm_grad_add_pass();  // fuse/norm_grad_add.cpp
Pass fuse_matmul_add_pass();     // fuse/matmul_add.cpp
Pass sparse_rows_pass();
Pass precision_pass();
Pass upcast_gradients_pass();

}  // namespace trainscope
