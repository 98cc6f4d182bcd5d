# Writes the manual pages of PROGRAM into FOLDER: cmake -DPROGRAM=.. -DFOLDER=.. -P man_pages.cmake
function(write_page file)
  execute_process(COMMAND "${PROGRAM}" help --man ${ARGN} OUTPUT_VARIABLE page
                  COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${FOLDER}/${file}" "${page}")
endfunction()

execute_process(COMMAND "${PROGRAM}" help --json OUTPUT_VARIABLE facts COMMAND_ERROR_IS_FATAL ANY)
string(JSON count LENGTH "${facts}" verbs)
math(EXPR last "${count} - 1")
write_page(trainscope.1)
foreach(i RANGE ${last})
  string(JSON verb GET "${facts}" verbs ${i} name)
  write_page(trainscope-${verb}.1 ${verb})
endforeach()
