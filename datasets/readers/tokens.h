// Binary files of token ids: nanoGPT's and llm.c's.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// Little-endian unsigned ids of 16 or 32 bits one after the other. A file that begins with the
// magic number 20240520 or 20240801 has llm.c's header of 256 32-bit integers: magic, version (1
// or 7), number of tokens, zeros; its ids have 16 or 32 bits. Any other file has no header
// (nanoGPT), and ids of 16 bits unless the option dtype says uint32. Every id must be one that the
// model knows. The file is mapped and not loaded; examples are windows (windows.h).
std::unique_ptr<Dataset> open_tokens(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
