# The CUDA kernels once more, under the thread sanitizer, beside whatever else is built: they alone are
# compiled for it, since what launches them is one thread of the host. The emulator tells it of CUDA
# threads, barriers and blocks. The examples are those of the mutation gate, and more of several blocks.
file(GLOB examples CONFIGURE_DEPENDS cuda/mutants/*_examples.cpp)
set(cases cuda/races/cases.cpp cuda/races/several_blocks.cpp cuda/interpreter/kernel_symbols.cpp ${examples})
target_sources(kernels_cuda_emulator_test PRIVATE ${cases})  # in eight orders, without a sanitizer
if(TRAINSCOPE_SANITIZE)
  return()  # another sanitizer, or this one for all sources
endif()
get_target_property(sources trainscope_kernels_cuda_emulator SOURCES)
list(FILTER sources INCLUDE REGEX "[.]cu$")
set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
add_library(cuda_races_kernels OBJECT ${sources} cuda/races/faulty_kernels.cpp)
trainscope_warnings(cuda_races_kernels)
target_compile_definitions(cuda_races_kernels PUBLIC TRAINSCOPE_EMULATE)
target_compile_options(cuda_races_kernels PRIVATE -mavx2 -mfma -ffp-contract=off -Wno-unknown-pragmas
                                                  -fsanitize=thread $<$<CONFIG:Release>:-O1>)
target_link_libraries(cuda_races_kernels PUBLIC trainscope_kernels_api)
target_include_directories(cuda_races_kernels PUBLIC "${PROJECT_SOURCE_DIR}")
trainscope_cuda_header_names(names)
trainscope_unity(cuda_races_kernels "${names}" ${sources})
trainscope_precompile(cuda_races_kernels)

set(emulator "${PROJECT_SOURCE_DIR}/kernels/cuda/emulator")
add_executable(cuda_races cuda/races/main.cpp ${cases} "${emulator}/emulator.cpp"
                          "${emulator}/kernel_callers.cpp" "${PROJECT_SOURCE_DIR}/kernels/cuda/own_kernels.cpp")
set_source_files_properties("${emulator}/emulator.cpp" PROPERTIES COMPILE_DEFINITIONS TRAINSCOPE_RACES)
foreach(support IN ITEMS op_case.cpp op_examples.cpp)
  trainscope_test_support(${support} object)
  target_sources(cuda_races PRIVATE $<TARGET_OBJECTS:${object}>)
endforeach()
trainscope_warnings(cuda_races)
target_link_libraries(cuda_races PRIVATE cuda_races_kernels trainscope_engine)
target_link_options(cuda_races PRIVATE -fsanitize=thread)

# One example a kernel: `scripts/nightly.sh FOLDER races` runs all, in nine orders.
trainscope_python_test(kernels_cuda.races cuda/races/races.py $<TARGET_FILE:cuda_races>)
trainscope_python_test(kernels_cuda.race_lines cuda/races/races_test.py)
foreach(test IN ITEMS races race_lines)
  set_property(TEST kernels_cuda.${test} APPEND PROPERTY LABELS cuda)
endforeach()
