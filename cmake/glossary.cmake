# Writes the rows of docs/glossary.md as entries of a C++ table.
# cmake -DSOURCE=docs/glossary.md -DTARGET=glossary_rows.def -P glossary.cmake
file(STRINGS "${SOURCE}" lines REGEX "^\\| \\*\\*")
set(rows "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "\\[([^]]*)\\]\\([^)]*\\)" "\\1" line "${line}")  # links become their texts
  string(REGEX REPLACE "[*`]" "" line "${line}")
  string(REPLACE "\\" "\\\\" line "${line}")
  string(REPLACE "\"" "\\\"" line "${line}")
  if(line MATCHES "^\\| (.+) \\| (.+) \\|$")
    string(APPEND rows "{\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\"},\n")
  endif()
endforeach()
file(WRITE "${TARGET}" "${rows}")
