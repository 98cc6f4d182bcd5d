# Every third-party library, found once. A missing one names the Debian package that brings it.
function(trainscope_missing what package)
  message(FATAL_ERROR "${what} not found: install the Debian package ${package} "
                      "(scripts/setup.sh build test installs everything).")
endfunction()

macro(trainscope_find name package)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    trainscope_missing(${name} ${package})
  endif()
endmacro()

# A library without a usable CMake config, as the imported target trainscope::<name>.
function(trainscope_find_library name header library package)
  find_path(TRAINSCOPE_${name}_INCLUDE ${header})
  find_library(TRAINSCOPE_${name}_LIBRARY ${library})
  if(NOT TRAINSCOPE_${name}_INCLUDE OR NOT TRAINSCOPE_${name}_LIBRARY)
    trainscope_missing(${name} ${package})
  endif()
  add_library(trainscope::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(trainscope::${name} PROPERTIES
    IMPORTED_LOCATION "${TRAINSCOPE_${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${TRAINSCOPE_${name}_INCLUDE}")
endfunction()

trainscope_find(fmt libfmt-dev)
trainscope_find(nlohmann_json nlohmann-json3-dev)
trainscope_find(CLI11 libcli11-dev)
trainscope_find(tomlplusplus libtomlplusplus-dev)
trainscope_find(Protobuf libprotobuf-dev)
trainscope_find(ONNX libonnx-dev)
trainscope_find(CURL libcurl4-openssl-dev)
trainscope_find(ZLIB zlib1g-dev)
trainscope_find(PNG libpng-dev)
trainscope_find(JPEG libjpeg62-turbo-dev)
trainscope_find_library(xxhash xxhash.h xxhash libxxhash-dev)
# oneDNN's own CMake config demands OpenCL, which the CPU engine does not use.
trainscope_find_library(dnnl oneapi/dnnl/dnnl.hpp dnnl libdnnl-dev)

set(THREADS_PREFER_PTHREAD_FLAG ON)
trainscope_find(Threads libc6-dev)

# Without OpenMP the pragmas are ignored and every kernel runs on the calling thread.
add_library(trainscope_openmp INTERFACE)
if(TRAINSCOPE_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(NOT OpenMP_CXX_FOUND)
    trainscope_missing(OpenMP g++)
  endif()
  target_link_libraries(trainscope_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# NVIDIA's header, where it is: our records of its activity buffers are held against it.
add_library(trainscope_cupti INTERFACE)
find_path(TRAINSCOPE_CUPTI_INCLUDE cupti.h
          HINTS /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)
if(TRAINSCOPE_CUPTI_INCLUDE)
  target_include_directories(trainscope_cupti SYSTEM INTERFACE "${TRAINSCOPE_CUPTI_INCLUDE}")
endif()

# Another python3 on PATH (pyenv, conda) does not see Debian's modules.
set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Debian's interpreter")
if(TRAINSCOPE_TESTS)
  trainscope_find(doctest doctest-dev)
  trainscope_find(Python3 python3 COMPONENTS Interpreter)
endif()
