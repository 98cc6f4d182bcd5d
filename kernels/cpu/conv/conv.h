// The files of convolution kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_conv(KernelTable& table);                     // our own for any case, and those below
void add_conv_onednn(KernelTable& table);              // f32 on oneDNN
void add_conv_winograd(KernelTable& table);            // f32 on oneDNN, windows of 3 x 3
void add_conv_narrow(KernelTable& table);              // few channels made, stride 1
void add_conv_grad_weight_wide(KernelTable& table);    // many channels
void add_conv_grad_weight_narrow(KernelTable& table);  // few channels made or read, stride 1
void add_conv_grad_input_batch(KernelTable& table);    // few channels made, short rows, stride 1
void add_conv_pointwise(KernelTable& table);           // 1 x 1 windows on our matrix product

}  // namespace trainscope::cpu
