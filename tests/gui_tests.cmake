# Tests of the window: what needs its packages.
trainscope_test(gui/draw ASAN LIBS PkgConfig::IMGUI ZLIB::ZLIB)
trainscope_test(gui/ui)
trainscope_test(gui/workbench)
trainscope_test(gui/panels DEPS gui/budget gui/platform engine/models SUPPORT kept_plans.cpp LABELS gui long processes)
if(TARGET gui_panels_test)
  target_sources(gui_panels_test PRIVATE cli/program_runner.cpp)
  add_dependencies(gui_panels_test trainscope)  # its cases run the program
endif()
trainscope_test(gui/platform DEPS engine/models SUPPORT kept_plans.cpp LABELS gui long processes)
if(TARGET gui_platform_test)
  target_sources(gui_platform_test PRIVATE cli/program_runner.cpp)
  add_dependencies(gui_platform_test trainscope trainscope-window)
endif()
trainscope_python_test(gui.shot gui/shot_test.py $<TARGET_FILE:trainscope>)
trainscope_python_test(gui.verb gui/gui_verb_test.py $<TARGET_FILE:trainscope>)
trainscope_python_test(gui.display gui/window_display_test.py $<TARGET_FILE:trainscope>)
set_tests_properties(gui.shot gui.verb gui.display PROPERTIES LABELS processes)
# All of the window's tests: ctest -R "^gui". Those of the label processes start programs, those of the
# label long go through all that there is: plans, commands, damaged runs.
foreach(test gui_draw gui_ui gui_workbench gui_data gui_views)
  set_property(TEST ${test} APPEND PROPERTY LABELS gui)
endforeach()
