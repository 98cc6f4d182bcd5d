// A builder's model as a word: "gpt2:1558M", "gpt2:355M,context=2048,dropout=0.1".
#pragma once

#include <string>
#include <string_view>

#include "engine/models/models.h"

namespace trainscope {

// Whether the word begins with a builder's name and has nothing after it but a colon and options.
bool is_model_name(std::string_view word);

// NAME[:SIZE][,OPTION=VALUE]..., SIZE one of `--size`, the options those of `trainscope model
// NAME`; on or off for switches, + between numbers of a list. Throws kUsage for what the builder
// lacks.
PlainModel named_model(std::string_view word);

}  // namespace trainscope
