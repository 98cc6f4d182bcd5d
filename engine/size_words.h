// Sizes as words of a command line: "--batch 8 --shape mask=8,128", for flags and for fields of the
// window.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_sizes.h"  // IWYU pragma: export

namespace trainscope {

inline constexpr std::int64_t kMostSize = 1 << 24;  // of --batch, --seq and --max-trips

// Adds what "--NAME TEXT" asks for. Throws kUsage for a name that is no size's, a text that is not
// understood, and a second shape or axis of one input.
void add_size(SizeRequest& request, std::string_view name, std::string_view text);

// Words with blanks between them, "--batch 8" or "--batch=8". Throws kUsage.
SizeRequest sizes_from_words(std::string_view line);
// The words that ask for these sizes; none where none is asked for.
std::vector<std::string> words_of(const SizeRequest& request);

}  // namespace trainscope
