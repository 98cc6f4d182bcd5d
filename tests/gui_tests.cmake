# Tests of the window: what needs its packages.
trainscope_test(gui/draw ASAN LIBS PkgConfig::IMGUI ZLIB::ZLIB)
trainscope_test(gui/ui ASAN)
