// The files of convolution kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_conv(KernelTable& table);                     // our own for any case, and those below
void add_conv_onednn(KernelTable& table);              // f32 on oneDNN
void add_conv_winograd(KernelTable& table);            // f32 on oneDNN, windows of 3 x 3
void add_conv_narrow(KernelTable& table);              // few out channels, stride 1
void add_conv_grad_weight_wide(KernelTable& table);    // many channels
void add_conv_grad_weight_narrow(KernelTable& table);  // few in or out channels, stride 1
void add_conv_grad_input_batch(KernelTable& table);    // few in channels, short rows, stride 1
void add_conv_pointwise(KernelTable& table);           // 1 x 1 windows on our GEMM

}  // namespace trainscope::cpu
