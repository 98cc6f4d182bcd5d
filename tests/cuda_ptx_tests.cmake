# An interpreter of PTX, for what nvcc makes of the CUDA kernels.
add_library(trainscope_cuda_ptx INTERFACE)
set_target_properties(trainscope_cuda_ptx PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                     TRAINSCOPE_DEPS trainscope_kernels_cuda_emulator)
trainscope_test(cuda/ptx DEPS engine LIBS trainscope_kernels_cuda_emulator
                SUPPORT graph_text.cpp op_case.cpp op_examples.cpp)
set_property(TEST cuda_ptx APPEND PROPERTY LABELS cuda)
