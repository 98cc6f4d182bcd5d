// A libtrainscope_cuda.so that the loader must refuse, and what it needs before one.
#include "kernels/api/back_end.h"

#ifdef TRAINSCOPE_BACK_END_VERSION
namespace {

constexpr trainscope::BackEndLibrary kLibrary{.bytes = TRAINSCOPE_BACK_END_BYTES,
                                              .version = TRAINSCOPE_BACK_END_VERSION};

}  // namespace

extern "C" const trainscope::BackEndLibrary* trainscope_back_end() { return &kLibrary; }
#endif
