# A third of a build is standard headers: they are parsed once for all libraries and once, with the
# engine's own, for all tests. With ccache each source is compiled alone instead, which shows a missing include.
if(TRAINSCOPE_CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(TRAINSCOPE_PRECOMPILE "Parse standard headers once" ${precompile})

# The target's own, of HEADER if that is named, or with OWNER those of a target with the same compile options.
function(trainscope_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OWNER;HEADER" "")
  if(NOT arg_HEADER)
    set(arg_HEADER cmake/precompiled.h)
  endif()
  if(NOT TRAINSCOPE_PRECOMPILE)
    return()
  endif()
  if(arg_OWNER)
    target_precompile_headers(${target} REUSE_FROM ${arg_OWNER})
  else()
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/${arg_HEADER}")
  endif()
  # fmt's headers, read with the same macros where the target itself has no use for fmt.
  target_compile_definitions(${target} PRIVATE
    $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endfunction()

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "int main() {}\n")
if(TRAINSCOPE_PRECOMPILE)
  add_library(trainscope_precompiled_library STATIC "${PROJECT_BINARY_DIR}/precompiled.cpp")
  trainscope_precompile(trainscope_precompiled_library)
  trainscope_warnings(trainscope_precompiled_library)
endif()
