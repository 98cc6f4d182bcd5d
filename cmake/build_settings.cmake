# Language, output folders and sanitizers: what holds for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "debug or release flags" FORCE)
endif()

# Who edits sources wants ccache, and then each compiled alone; who builds once is done sooner without.
set(TRAINSCOPE_CCACHE "" CACHE STRING "A compiler cache, such as ccache, and each source compiled alone")
if(TRAINSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TRAINSCOPE_CCACHE}")
endif()

# g++ frees memory that a source needs no more when it has 128 MiB, less than headers take: without that
# it is done in some 10 % less time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)  # KiB
endif()

# A hundred programs of static libraries are linked: gold takes two thirds of the time of binutils' other linker.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold TRAINSCOPE_HAS_GOLD)
if(TRAINSCOPE_HAS_GOLD)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=gold>)
endif()

# A failed CHECK_INVARIANT: abort() where somebody looks for its place, else an exception.
set(TRAINSCOPE_CHECKS_ABORT OFF)
if(TRAINSCOPE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(TRAINSCOPE_CHECKS_ABORT ON)
endif()

if(TRAINSCOPE_SANITIZE)
  add_compile_options(-fsanitize=${TRAINSCOPE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  if(TRAINSCOPE_SANITIZE_NOT)
    add_compile_options(-fno-sanitize=${TRAINSCOPE_SANITIZE_NOT})
  endif()
  add_link_options(-fsanitize=${TRAINSCOPE_SANITIZE})
endif()
