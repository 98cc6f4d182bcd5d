// The loader of the CUDA back end: where it looks, what it refuses, what a machine without a GPU
// gives.
#include "kernels/cuda/loader/loader.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/device.h"
#include "kernels/cuda/loader/library_folders.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

// An empty folder that ends with the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("loader_test_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path make(const char* below) const {
    fs::create_directories(path_ / below);
    return path_ / below;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("loader: folders in the order in which they are probed, those that exist") {
  const Folder root;
  const fs::path wanted = root.make("wanted");
  const fs::path bin = root.make("program/bin");
  const fs::path lib = root.make("program/lib");
  const fs::path toolkit = root.make("cuda/lib64");
  const fs::path older = root.make("python/lib/python3.11/site-packages/nvidia/cu13/lib");
  const fs::path newer = root.make("python/lib/python3.12/site-packages/nvidia/cu13/lib");
  const fs::path nccl = root.make("python/lib/python3.12/site-packages/nvidia/nccl/lib");
  const cuda::LibraryPlaces places{.wanted = wanted.string(),
                                   .program = bin,
                                   .toolkit = root.path() / "cuda",
                                   .python = {root.path() / "python", root.path() / "absent"}};
  CHECK(cuda::library_folders(places) ==
        std::vector<fs::path>{wanted, bin, lib, toolkit, newer, nccl, older});
}

TEST_CASE("loader: the first folder that has a file wins") {
  const Folder root;
  const std::vector<fs::path> folders{root.make("a"), root.make("b"), root.make("c")};
  for (const char* below : {"b", "c"}) std::ofstream(root.path() / below / "libx.so") << "x";
  CHECK(cuda::find_library(folders, "libx.so") == root.path() / "b" / "libx.so");
  CHECK(cuda::find_library(folders, "liby.so").empty());
}

TEST_CASE("loader: of files with numbers the highest, as a number") {
  const Folder root;
  for (const char* name : {"libx.so.13.2", "libx.so.13.10", "libx.so.13.9", "libx.so.13.10.88",
                           "libx.so.13.", "libx.so.12.99", "libx.alt.so.13.11"}) {
    std::ofstream(root.path() / name) << "x";
  }
  CHECK(cuda::highest_numbered(root.path(), "libx.so.13.") == "libx.so.13.10");
  CHECK(cuda::highest_numbered(root.path(), "liby.so.13.").empty());
  CHECK(cuda::highest_numbered(root.path() / "absent", "libx.so.13.").empty());
  CHECK(cuda::highest_numbered({}, "libx.so.13.").empty());
}

// The plug-in is no library, so that loading ends there.
TEST_CASE("loader: NVRTC is opened before cuDNN, with the builtins that lie beside it") {
  const Folder root;
  const fs::path stub = fs::path(TRAINSCOPE_BACK_END_STUBS) / "libcudart.so.13";
  const fs::path first = root.make("a");
  const fs::path second = root.make("b");
  std::ofstream(first / "libtrainscope_cuda.so") << "no library";
  for (const char* name : {"libcudart.so.13", "libcublasLt.so.13", "libnvrtc-builtins.so.13.20"}) {
    fs::copy_file(stub, first / name);
  }
  for (const char* name : {"libcudnn.so.9", "libnvrtc.so.13", "libnvrtc-builtins.so.13.9",
                           "libnvrtc-builtins.so.13.10"}) {
    fs::copy_file(stub, second / name);
  }
  const cuda::LoadedBackEnd loaded = cuda::load({first, second});
  std::vector<std::string> paths;
  for (const cuda::LoadedLibrary& library : loaded.files) paths.push_back(library.path);
  CHECK(paths == std::vector<std::string>{first / "libcudart.so.13", first / "libcublasLt.so.13",
                                          second / "libnvrtc-builtins.so.13.10",
                                          second / "libnvrtc.so.13", second / "libcudnn.so.9"});
}

TEST_CASE("loader: a build without the back end says so") {
  const Folder root;
  const cuda::LoadedBackEnd loaded = cuda::load({root.path()});
  CHECK(loaded.library == nullptr);
  CHECK(says(loaded.why_not, "this build has no CUDA back end"));
}

TEST_CASE("loader: a file that is no library is told by its name") {
  const Folder root;
  std::ofstream(root.path() / "libtrainscope_cuda.so") << "no library";
  fs::copy(fs::path(TRAINSCOPE_BACK_END_STUBS) / "libcudart.so.13", root.path());
  fs::copy(fs::path(TRAINSCOPE_BACK_END_STUBS) / "libcublasLt.so.13", root.path());
  CHECK(says(cuda::load({root.path()}).why_not, "the CUDA back end cannot be loaded: "));
}

TEST_CASE("loader: libraries that are no back end of this version are refused") {
  const fs::path stubs(TRAINSCOPE_BACK_END_STUBS);
  const auto why = [&stubs](const char* kind) {
    const cuda::LoadedBackEnd loaded = cuda::load({stubs / kind, stubs});
    CHECK(loaded.library == nullptr);
    return loaded.why_not;
  };
  CHECK(says(why("older"), "was built for version 2 of the device interface, this program has " +
                               std::to_string(kDeviceVersion)));
  CHECK(says(why("smaller"), "lacks functions that this program calls"));
  CHECK(says(why("other"), "is no back end: it lacks trainscope_back_end"));
}

TEST_CASE("loader: without a driver there is no device, and a reason") {
  const MadeDevice made = cuda::make_device(0);
  if (made.device != nullptr) {
    CHECK(made.device->facts().name == "cuda:0");
    CHECK(!cuda::describe(*made.device).empty());
    const MadeDevice beyond = cuda::make_device(1000);
    CHECK(says(beyond.why_not, "there is no CUDA device 1000"));
    return;
  }
  MESSAGE(made.why_not);
  const bool built = !says(made.why_not, "this build has no CUDA back end");
  const bool loaded = built && !says(made.why_not, "a library of CUDA is missing");
  if (loaded) CHECK(says(made.why_not, "CUDA"));
  CHECK(!made.why_not.empty());
}

}  // namespace trainscope::test
