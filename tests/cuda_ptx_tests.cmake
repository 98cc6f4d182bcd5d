# The CUDA kernels through the PTX that nvcc makes of them: an interpreter runs it, and the emulator's
# results are what it must give. Both have one definition of exp and the like (nvcc_functions.cuh),
# and neither joins a multiplication and an addition by itself.
add_library(trainscope_cuda_ptx INTERFACE)
set_target_properties(trainscope_cuda_ptx PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                     TRAINSCOPE_DEPS trainscope_kernels_cuda_emulator)
# The interpreter: optimised, unlike the tests.
file(GLOB interpreter_sources CONFIGURE_DEPENDS cuda/interpreter/*.cpp)
add_library(cuda_interpreter OBJECT ${interpreter_sources})
trainscope_warnings(cuda_interpreter)
target_include_directories(cuda_interpreter PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(cuda_interpreter PRIVATE TRAINSCOPE_EMULATE)
trainscope_precompile(cuda_interpreter OWNER trainscope_precompiled_library)
trainscope_test(cuda/ptx DEPS engine LIBS trainscope_kernels_cuda_emulator cuda_interpreter
                SUPPORT copying_device.cpp graph_text.cpp op_case.cpp op_examples.cpp)
set_property(TEST cuda_ptx APPEND PROPERTY LABELS cuda)
# <folder>/<name>.ptx for each unit of the sources, which is compiled with these options too.
function(trainscope_ptx folder options)
  file(MAKE_DIRECTORY "${folder}")
  set(texts)
  trainscope_cuda_units(units "${folder}" ${ARGN})
  foreach(source IN LISTS units)
    cmake_path(GET source PARENT_PATH name)
    cmake_path(GET name FILENAME name)
    cmake_path(GET source STEM stem)
    string(APPEND name "_${stem}")
    set(text "${folder}/${name}.ptx")
    add_custom_command(OUTPUT "${text}"
      COMMAND "${CMAKE_CUDA_COMPILER}" -ptx -arch=sm_90a -std=c++20 -lineinfo --expt-relaxed-constexpr
              --diag-suppress=2810 ${options} "-I${PROJECT_SOURCE_DIR}" -MD -MF "${text}.d" "${source}"
              -o "${text}"
      DEPENDS "${source}" DEPFILE "${text}.d" COMMENT "PTX of ${name}" VERBATIM)
    list(APPEND texts "${text}")
  endforeach()
  # The interpreter reads all texts of the folder: none of units that there are no more.
  file(GLOB old "${folder}/*.ptx")
  list(REMOVE_ITEM old ${texts})
  if(old)
    file(REMOVE ${old})
  endif()
  set(texts ${texts} PARENT_SCOPE)
endfunction()

set(ptx_folder)
if(TRAINSCOPE_HAS_CUDA)
  set(ptx_folder "${CMAKE_CURRENT_BINARY_DIR}/ptx")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/cuda/*/*.cu")
  # Attention's many shapes take a minute; the others are written against CUDA's own interfaces.
  list(FILTER sources EXCLUDE REGEX "/(device|gemm|plugin)/|/attention(_grad)?[.]cu$")
  set(functions "${CMAKE_CURRENT_SOURCE_DIR}/cuda/ptx/nvcc_functions.cuh")
  trainscope_ptx("${ptx_folder}/strict" "-fmad=false;-include;${functions}" ${sources})
  set(all_texts ${texts})
  # As they ship.
  list(FILTER sources INCLUDE REGEX "/(softmax|layer_norm|norm|activation|gated|loss|optimizer)[.]cu$")
  trainscope_ptx("${ptx_folder}/shipped" "" ${sources})
  add_custom_target(cuda_ptx_texts DEPENDS ${all_texts} ${texts})
  add_dependencies(cuda_ptx_test cuda_ptx_texts)
  # Runs mutants of these texts, for the mutation gate.
  file(GLOB sources CONFIGURE_DEPENDS cuda/mutants/*.cpp)
  add_executable(cuda_mutants ${sources} cuda/ptx/interpreted_run.cpp)
  foreach(support IN ITEMS op_case.cpp op_examples.cpp)
    trainscope_test_support(${support} object)
    target_sources(cuda_mutants PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
  trainscope_warnings(cuda_mutants)
  target_link_libraries(cuda_mutants PRIVATE trainscope_engine trainscope_kernels_cuda_emulator cuda_interpreter)
  add_dependencies(cuda_mutants cuda_ptx_texts)
endif()
target_compile_definitions(cuda_ptx_test PRIVATE TRAINSCOPE_PTX="${ptx_folder}")
