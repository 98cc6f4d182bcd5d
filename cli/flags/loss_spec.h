// --loss in its short form: KIND:output=logits,labels=labels[,ignore_index=-100,class_axis=-1], or
// output:NAME; several of them with " + " between are summed, each with a weight before it if
// wanted: mse:output=y,labels=x + 0.5*output:kl.
#pragma once

#include <string_view>

#include "engine/model_loss.h"  // IWYU pragma: export

namespace trainscope {

// The defaults are those of the form. Throws kUsage: unknown kind or key (with the nearest name), a
// value that is no number; kIo and kBadInput for a file of class weights.
LossOptions parse_loss(std::string_view text);

}  // namespace trainscope
