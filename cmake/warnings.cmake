# Warnings for our own code. They are target options, so they never reach third-party sources.
function(trainscope_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports overlaps inside std::string operator+ that do not exist (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
    if(TRAINSCOPE_UNITY OR TRAINSCOPE_PRECOMPILE)
      # What it finds by following values it then also reports of the inside of std::string, by the
      # same bug. Builds with ccache, which compile each source alone, have these as errors.
      target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread
                                               -Wno-array-bounds -Wno-maybe-uninitialized)
    endif()
    if(TRAINSCOPE_SANITIZE)
      # The instrumentation hides initialisations from g++ 12's flow analysis.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(NOT TRAINSCOPE_OPENMP)
    target_compile_options(${target} PRIVATE -Wno-unknown-pragmas)
  endif()
endfunction()
