# The CUDA back end as it ships, over a simulated GPU: libcudart and libcublasLt of the tests in
# place of NVIDIA's, and the emulator's kernels in place of the GPU's. Programs of the same names as
# the real ones lie in simulated/bin, and find all of it in simulated/lib.
if(NOT TRAINSCOPE_HAS_CUDA)
  return()
endif()
set(simulated "${CMAKE_CURRENT_SOURCE_DIR}/cuda/simulated")
set(simulated_folder "${PROJECT_BINARY_DIR}/simulated")
function(trainscope_simulated_library target name)
  add_library(${target} SHARED ${ARGN})
  trainscope_warnings(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME "${name}" SUFFIX .so.13 LIBRARY_OUTPUT_DIRECTORY "${simulated_folder}/lib"
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  trainscope_precompile(${target} OWNER trainscope_precompiled_library)
endfunction()
trainscope_simulated_library(simulated_cudart cudart "${simulated}/cudart.cpp" "${simulated}/memory.cpp"
                             "${simulated}/runtime.cpp" "${simulated}/streams.cpp")
target_link_options(simulated_cudart PRIVATE "LINKER:--version-script=${simulated}/cudart.map")
trainscope_simulated_library(simulated_cublas_lt cublasLt "${simulated}/cublas_lt.cpp")
target_link_libraries(simulated_cublas_lt PRIVATE simulated_cudart trainscope_kernels_api)
set(plug_in "${simulated_folder}/lib/libtrainscope_cuda.so")
add_custom_command(OUTPUT "${plug_in}" DEPENDS trainscope_cuda VERBATIM
  COMMAND "${CMAKE_COMMAND}" -E create_symlink $<TARGET_FILE:trainscope_cuda> "${plug_in}")
add_custom_target(simulated_plug_in DEPENDS "${plug_in}" simulated_cudart simulated_cublas_lt)
if(TRAINSCOPE_NCCL_INCLUDE)
  trainscope_simulated_library(simulated_nccl nccl "${CMAKE_CURRENT_SOURCE_DIR}/support/nccl_stub.cpp")
  set_target_properties(simulated_nccl PROPERTIES SUFFIX .so.2)
  target_include_directories(simulated_nccl SYSTEM PRIVATE ${TRAINSCOPE_NCCL_INCLUDE})
  target_compile_definitions(simulated_nccl PRIVATE TRAINSCOPE_SIMULATED_CUDA)
  target_link_libraries(simulated_nccl PRIVATE simulated_cudart)
  add_dependencies(simulated_plug_in simulated_nccl)
endif()

add_library(simulated_kernels OBJECT "${simulated}/own_kernels.cpp")
trainscope_warnings(simulated_kernels)
target_link_libraries(simulated_kernels PUBLIC
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,trainscope_kernels_cuda_emulator>")
function(trainscope_simulated_program name)
  add_executable(simulated_${name} ${ARGN})
  trainscope_warnings(simulated_${name})
  target_link_libraries(simulated_${name} PRIVATE simulated_kernels cuda_interpreter)
  set_target_properties(simulated_${name} PROPERTIES
    OUTPUT_NAME "${name}" ENABLE_EXPORTS ON RUNTIME_OUTPUT_DIRECTORY "${simulated_folder}/bin")
  add_dependencies(simulated_${name} simulated_plug_in)
endfunction()
trainscope_simulated_program(trainscope "${PROJECT_SOURCE_DIR}/cli/main.cpp")
target_link_libraries(simulated_trainscope PRIVATE trainscope_cli)
trainscope_simulated_program(device_self_test)
trainscope_device_self_test(simulated_device_self_test)

add_library(trainscope_cuda_runtime INTERFACE)
set_target_properties(trainscope_cuda_runtime PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                         TRAINSCOPE_DEPS trainscope_kernels_api)
trainscope_test(cuda/runtime LIBS simulated_cudart simulated_cublas_lt)
set_target_properties(cuda_runtime_test PROPERTIES ENABLE_EXPORTS ON)  # its kernels
set_property(TEST cuda_runtime APPEND PROPERTY LABELS cuda)

add_test(NAME device.self_test.simulated COMMAND simulated_device_self_test --device cuda)
set_tests_properties(device.self_test.simulated PROPERTIES LABELS "fast;cuda" TIMEOUT 1800)
foreach(case IN ITEMS verified trained ordered waits interpreted ranks)
  trainscope_python_test(kernels_cuda.simulated.${case} cuda/runtime/training_test.py
                         "${PROJECT_BINARY_DIR}" ${case})
  set_property(TEST kernels_cuda.simulated.${case} APPEND PROPERTY LABELS cuda)
endforeach()
