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
                             "${simulated}/order_log.cpp" "${simulated}/runtime.cpp" "${simulated}/streams.cpp")
target_link_options(simulated_cudart PRIVATE "LINKER:--version-script=${simulated}/cudart.map")
trainscope_simulated_library(simulated_cublas_lt cublasLt "${simulated}/cublas_lt.cpp")
target_link_libraries(simulated_cublas_lt PRIVATE simulated_cudart trainscope_kernels_api)
if(TRAINSCOPE_CUPTI_INCLUDE)
  trainscope_simulated_library(simulated_cupti cupti "${simulated}/cupti.cpp")
  target_include_directories(simulated_cupti SYSTEM PRIVATE "${TRAINSCOPE_CUPTI_INCLUDE}")
  target_link_libraries(simulated_cupti PRIVATE simulated_cudart)
endif()
set(plug_in "${simulated_folder}/lib/libtrainscope_cuda.so")
add_custom_command(OUTPUT "${plug_in}" DEPENDS trainscope_cuda VERBATIM
  COMMAND "${CMAKE_COMMAND}" -E create_symlink $<TARGET_FILE:trainscope_cuda> "${plug_in}")
add_custom_target(simulated_plug_in DEPENDS "${plug_in}" simulated_cudart simulated_cublas_lt)
if(TRAINSCOPE_CUPTI_INCLUDE)
  add_dependencies(simulated_plug_in simulated_cupti)
endif()
if(TRAINSCOPE_CUDNN_INCLUDE)
  file(GLOB cudnn_sources CONFIGURE_DEPENDS "${simulated}/cudnn*.cpp")
  trainscope_simulated_library(simulated_cudnn cudnn ${cudnn_sources})
  set_target_properties(simulated_cudnn PROPERTIES SUFFIX .so.9)
  target_include_directories(simulated_cudnn SYSTEM PRIVATE ${TRAINSCOPE_CUDNN_INCLUDE})
  target_link_libraries(simulated_cudnn PRIVATE simulated_cudart trainscope_kernels_api)
  add_dependencies(simulated_plug_in simulated_cudnn)
endif()
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

# Choices of cuBLASLt's algorithms.
add_library(trainscope_kernels_cuda_gemm STATIC
  "${PROJECT_SOURCE_DIR}/kernels/cuda/gemm/cublas_lt.cpp" "${PROJECT_SOURCE_DIR}/kernels/cuda/gemm/lt_choices.cpp"
  "${PROJECT_SOURCE_DIR}/kernels/cuda/gemm/lt_timing.cpp")
trainscope_warnings(trainscope_kernels_cuda_gemm)
target_include_directories(trainscope_kernels_cuda_gemm PUBLIC "${PROJECT_SOURCE_DIR}")
target_include_directories(trainscope_kernels_cuda_gemm SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(trainscope_kernels_cuda_gemm PUBLIC trainscope_kernels_api simulated_cudart ${CMAKE_DL_LIBS})
set_target_properties(trainscope_kernels_cuda_gemm PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                              TRAINSCOPE_DEPS trainscope_kernels_api)
trainscope_test(kernels/cuda/gemm FOLDER cuda/gemm LIBS trainscope_kernels_cuda_gemm)
set_target_properties(kernels_cuda_gemm_test PROPERTIES ENABLE_EXPORTS ON)  # its kernels
set_property(TEST kernels_cuda_gemm APPEND PROPERTY LABELS cuda)

# Graphs of cuDNN: run by the simulated library, and in a process of its own (long) planned by NVIDIA's
# for GPUs that are only described.
if(TRAINSCOPE_CUDNN_INCLUDE)
  file(GLOB cudnn_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/cuda/cudnn/*.cpp")
  list(FILTER cudnn_sources EXCLUDE REGEX "/(attention|conv|own_kernel)[.]cpp$")  # need own kernels
  add_library(trainscope_kernels_cuda_cudnn STATIC ${cudnn_sources})
  trainscope_warnings(trainscope_kernels_cuda_cudnn)
  target_include_directories(trainscope_kernels_cuda_cudnn PUBLIC "${PROJECT_SOURCE_DIR}")
  target_include_directories(trainscope_kernels_cuda_cudnn SYSTEM PUBLIC
    ${TRAINSCOPE_CUDNN_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(trainscope_kernels_cuda_cudnn PUBLIC trainscope_kernels_api simulated_cudart ${CMAKE_DL_LIBS})
  set_target_properties(trainscope_kernels_cuda_cudnn PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                                 TRAINSCOPE_DEPS trainscope_kernels_api)
  trainscope_test(kernels/cuda/cudnn FOLDER cuda/cudnn LABELS fast long
                  LIBS trainscope_kernels_cuda_cudnn trainscope_kernels_cuda_emulator)
  set_target_properties(kernels_cuda_cudnn_test PROPERTIES ENABLE_EXPORTS ON)
  add_dependencies(kernels_cuda_cudnn_test simulated_cudnn)
  find_library(TRAINSCOPE_CUDNN_LIBRARY NAMES libcudnn.so.9 HINTS "${CUDAToolkit_LIBRARY_DIR}")
  target_compile_definitions(kernels_cuda_cudnn_test PRIVATE
    TRAINSCOPE_SIMULATED_CUDNN="$<TARGET_FILE:simulated_cudnn>"
    TRAINSCOPE_REAL_CUDNN="${TRAINSCOPE_CUDNN_LIBRARY}"
    TRAINSCOPE_CUDA_DRIVER_STUB="${CUDAToolkit_LIBRARY_DIR}/stubs/libcuda.so")
  foreach(entry IN ITEMS kernels_cuda_cudnn kernels_cuda_cudnn.long)
    set_property(TEST ${entry} APPEND PROPERTY LABELS cuda)
  endforeach()
endif()

add_test(NAME device.self_test.simulated COMMAND simulated_device_self_test --device cuda)
set_tests_properties(device.self_test.simulated PROPERTIES LABELS "fast;cuda" TIMEOUT 1800)
foreach(case IN ITEMS verified trained ordered waits chosen low_precision tf32 timed refused interpreted zoo recomputed offloaded
                      overflowed ranks)
  trainscope_python_test(kernels_cuda.simulated.${case} cuda/runtime/training_test.py
                         "${PROJECT_BINARY_DIR}" ${case})
  set_property(TEST kernels_cuda.simulated.${case} APPEND PROPERTY LABELS cuda)
endforeach()
trainscope_python_test(kernels_cuda.simulated.launches cuda/runtime/launches_test.py "${PROJECT_BINARY_DIR}")
set_property(TEST kernels_cuda.simulated.launches APPEND PROPERTY LABELS cuda)
trainscope_python_test(kernels_cuda.simulated.gpu_script cuda/runtime/gpu_script_test.py
                       "${PROJECT_BINARY_DIR}" "${CMAKE_CUDA_COMPILER}")
set_property(TEST kernels_cuda.simulated.gpu_script APPEND PROPERTY LABELS cuda)
set_tests_properties(kernels_cuda.simulated.gpu_script PROPERTIES TIMEOUT 1800)

# The tracer: profiles of simulated trainings against their plans, and its own parts with NVIDIA's
# library, which needs no GPU for these.
if(NOT TRAINSCOPE_CUPTI_INCLUDE)
  return()
endif()
add_library(trainscope_kernels_cuda_trace STATIC "${PROJECT_SOURCE_DIR}/kernels/cuda/trace/activity_buffers.cpp"
                                                 "${PROJECT_SOURCE_DIR}/kernels/cuda/trace/cupti.cpp"
                                                 "${PROJECT_SOURCE_DIR}/kernels/cuda/trace/metrics.cpp")
trainscope_warnings(trainscope_kernels_cuda_trace)
target_include_directories(trainscope_kernels_cuda_trace PUBLIC "${PROJECT_SOURCE_DIR}")
target_include_directories(trainscope_kernels_cuda_trace SYSTEM PUBLIC "${TRAINSCOPE_CUPTI_INCLUDE}")
target_link_libraries(trainscope_kernels_cuda_trace PUBLIC trainscope_kernels_api ${CMAKE_DL_LIBS})
set_target_properties(trainscope_kernels_cuda_trace PROPERTIES TRAINSCOPE_HEADER_NAMES "" TRAINSCOPE_LEAF OFF
                                                               TRAINSCOPE_DEPS trainscope_kernels_api)
trainscope_test(kernels/cuda/trace FOLDER cuda/trace DEPS kernels/cuda/loader profiler/cupti
                LIBS trainscope_kernels_cuda_trace ${CMAKE_DL_LIBS})
set_property(TEST kernels_cuda_trace APPEND PROPERTY LABELS cuda)
foreach(case IN ITEMS replayed eager dropped absent levels)
  trainscope_python_test(kernels_cuda.traced.${case} cuda/trace/profile_test.py "${PROJECT_BINARY_DIR}" ${case})
  set_property(TEST kernels_cuda.traced.${case} APPEND PROPERTY LABELS cuda)
endforeach()
