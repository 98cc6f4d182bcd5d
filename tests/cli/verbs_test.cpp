// Every verb once: what it prints, and its JSON.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "engine/core/file.h"
#include "engine/session.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

Json facts(std::vector<std::string> words, const fs::path& folder) {
  words.emplace_back("--json");
  words.insert(words.end(), {"--threads", "1"});
  const std::string verb = words.front();
  const Finished finished = run(words, {}, folder);
  INFO(verb << ": " << finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.out.ends_with("}\n"));
  Json json = finished.json();
  CHECK(json.get<int>("schema_version") == 1);
  CHECK(json.get<std::string>("command") == verb);
  return json;
}

// A run on the mlp, made once for the cases of this file.
const fs::path& mlp_run() {
  static const TemporaryFolder folder;
  static const fs::path path = [] {
    const Finished finished = run({"train", kMlp, "--data", "synthetic", "--steps", "6",
                                   "--threads", "1", "-q", "--run-dir", "mlp"},
                                  {}, folder.path());
    REQUIRE(finished.exit_code == 0);
    return folder / "mlp";
  }();
  return path;
}

TEST_CASE("version, help, doctor: JSON") {
  CHECK(!facts({"version"}, {}).get<std::string>("version").empty());
  CHECK(facts({"help"}, {}).array_at("verbs").size() >= 14);
  CHECK(facts({"help", "train"}, {}).at("verb").array_at("flags").size() > 20);
  CHECK(facts({"help", "exit-codes"}, {}).array_at("exit_codes").size() == 12);
  CHECK(facts({"doctor"}, {}).at("cpu").get<int>("usable_cores") >= 1);
}

TEST_CASE("plan: of a model and of a run agree") {
  const Json model = facts({"plan", kMlp}, {});
  const Json recorded = facts({"plan", mlp_run().string()}, {});
  for (const char* key : {"peak_bytes", "lower_bound_bytes", "gap_bytes", "persistent_bytes",
                          "workspace_bytes", "buffer_count"}) {
    INFO(key);
    CHECK(model.get<std::int64_t>(key) == recorded.get<std::int64_t>(key));
  }
  CHECK(model.get<std::int64_t>("peak_bytes") >= model.get<std::int64_t>("lower_bound_bytes"));
  // With flags a run is planned anew, with its own options elsewhere: SGD keeps no moments.
  const Json sgd = facts({"plan", mlp_run().string(), "--optimizer", "sgd"}, {});
  CHECK(sgd.get<std::int64_t>("persistent_bytes") < model.get<std::int64_t>("persistent_bytes"));
  CHECK(run({"plan", kMlp}).out.find("peak ") == 0);
}

TEST_CASE("inspect: a model, a run, its stages, a graph, a node, memory") {
  const Json model = facts({"inspect", kMlp}, {});
  CHECK(model.at("ops").get<int>("Gemm") == 3);
  CHECK(model.array_at("inputs")[0].get<std::string>("name") == "x");

  const std::string folder = mlp_run().string();
  const Json run_facts = facts({"inspect", folder}, {});
  CHECK(run_facts.at("last_step").get<int>("step") == 6);
  CHECK(run_facts.get<double>("median_step_ms") > 0.0);
  CHECK(run_facts.array_at("stages").size() > 5);
  const Json stages = facts({"inspect", folder, "--stages"}, {});
  CHECK(stages.array_at("stages").back().get<std::int64_t>("flops_after") > 0);
  const auto names = [](const Json& of) {
    std::vector<std::string> found;
    for (const Json& stage : of.array_at("stages")) found.push_back(stage.get<std::string>("name"));
    return found;
  };
  // Those of its program too.
  CHECK(names(facts({"inspect", kMlp, "--stages"}, {})) == names(stages));
  CHECK(std::ranges::count(names(stages), "order") == 1);

  const Json imported = facts({"inspect", folder, "--stage", "imported"}, {});
  CHECK(imported.array_at("nodes").size() == 5);
  const Json last = facts({"inspect", folder, "--stage", "differentiate"}, {});
  CHECK(last.array_at("nodes").size() > 10);
  CHECK(run({"inspect", folder, "--stage", "imported"}).out.find("logits f32[16,10] = Gemm(") !=
        std::string::npos);
  // The stage of a model is what `train` would have recorded.
  CHECK(run({"inspect", kMlp, "--stage", "differentiate"}).out ==
        run({"inspect", folder, "--stage", "differentiate"}).out);

  const Json node = facts({"inspect", folder, "--stage", "imported", "--node", "/0/Gemm"}, {});
  CHECK(node.get<std::string>("op") == "Gemm");
  CHECK(node.get<std::int64_t>("flops") > 0);
  CHECK(node.array_at("sources")[0].as_string() == "/0/Gemm");
  CHECK(facts({"inspect", folder, "--stage", "imported", "--node", "0"}, {})
            .get<std::string>("name") == "/0/Gemm");
  CHECK(run({"inspect", folder, "--node", "/9/Gemm"}).exit_code == 2);
}

TEST_CASE("inspect: passes by the names that they had before") {
  const auto stages = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"inspect", kMlp, "--stages"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<std::string> names;
    const Json found = facts(words, {});
    for (const Json& stage : found.array_at("stages"))
      names.push_back(stage.get<std::string>("name"));
    return names;
  };
  const std::vector<std::string> without = stages({"--disable", "transposed_products"});
  CHECK(without == stages({"--disable", "fuse_transpose"}));
  CHECK(std::ranges::count(without, "fuse_transpose") == 0);
  const std::vector<std::string> stopped = stages({"--stop-after", "wide_gradients"});
  const auto last_pass = std::ranges::find(stopped, "upcast_gradients");
  REQUIRE(last_pass != stopped.end());
  // Only stages of the program follow.
  CHECK(std::vector<std::string>(last_pass + 1, stopped.end()) ==
        std::vector<std::string>{"order"});
  CHECK(run({"inspect", kMlp, "--stage", "wide_gradients"}).out ==
        run({"inspect", kMlp, "--stage", "upcast_gradients"}).out);
  CHECK(run({"inspect", kMlp, "--stage", "wide_gradient"}).exit_code == 2);
}

TEST_CASE("inspect: a run without stages, or with a list of none") {
  const TemporaryFolder folder;
  fs::copy(mlp_run(), folder / "run", fs::copy_options::recursive);
  const fs::path file = folder / "run" / "stages" / "stages.json";
  Json list = Json::parse(read_file(file, 1 << 20));
  list.set("stages", Json::array());
  const auto check_refused = [&] {
    const Finished finished = run({"inspect", (folder / "run").string(), "--stage", "imported"});
    CHECK(finished.exit_code == 3);
    CHECK(finished.err.find("the run has no stages: stages/stages.json is missing or lists none") !=
          std::string::npos);
    CHECK(finished.err.find("try: stages are written when training starts") != std::string::npos);
  };
  write_file_atomic(file, list.dump());
  check_refused();
  fs::remove(file);
  check_refused();
}

TEST_CASE("inspect --stages --explain: what passes nearly rewrote") {
  CHECK(run({"inspect", kMlp, "--stages", "--explain"}).out.ends_with("near misses\n  none\n"));
  const TemporaryFolder folder;
  fs::copy(mlp_run(), folder / "run", fs::copy_options::recursive);
  const fs::path file = folder / "run" / "stages" / "stages.json";
  std::string text = read_file(file, 1 << 20);
  const std::string none = "\"near_misses\": []";
  REQUIRE(text.find(none) != std::string::npos);
  text.replace(text.find(none), none.size(),
               R"("near_misses":[{"node":"/Exp","reason":"somebody reads it"}])");
  write_file_atomic(file, text);
  const std::string folder_text = (folder / "run").string();
  CHECK(run({"inspect", folder_text, "--stages", "--explain"})
            .out.ends_with("near misses\n  imported  /Exp: somebody reads it\n"));
  const Json old = facts({"inspect", folder_text, "--stages"}, {});
  const Json& one = old.at("stages").at(0).at("near_misses").at(0);
  CHECK(one.at("nodes") == Json::list(std::vector<std::string>{"/Exp"}));
  // As it is written now.
  const std::string before = R"("node":"/Exp",)";
  text.replace(text.find(before), before.size(),
               R"("node":"/Exp","nodes":["/Exp","/Sum","/Div"],)");
  write_file_atomic(file, text);
  CHECK(run({"inspect", folder_text, "--stages", "--explain"})
            .out.ends_with("  imported  /Exp: somebody reads it\n    with /Sum\n    with /Div\n"));
  const Json now = facts({"inspect", folder_text, "--stages"}, {});
  CHECK(now.at("stages").at(0).at("near_misses").at(0).at("nodes") ==
        Json::list(std::vector<std::string>{"/Exp", "/Sum", "/Div"}));
  CHECK_FALSE(run({"inspect", folder_text, "--stages"}).out.find("near") != std::string::npos);
  CHECK(run({"inspect", folder_text, "--explain"}).exit_code == 2);
}

TEST_CASE("inspect --memory: live buffers lie in the arena and do not overlap") {
  const std::string folder = mlp_run().string();
  const Json peak = facts({"inspect", folder, "--memory"}, {});
  CHECK(peak.get<std::int64_t>("live_bytes") <= peak.get<std::int64_t>("arena_bytes"));
  std::int64_t end = 0;
  std::int64_t sum = 0;
  for (const Json& buffer : peak.array_at("buffers")) {
    if (buffer.get<std::int64_t>("bytes") == 0) continue;
    CHECK(buffer.get<std::int64_t>("offset") >= end);
    end = buffer.get<std::int64_t>("offset") + buffer.get<std::int64_t>("bytes");
    sum += buffer.get<std::int64_t>("bytes");
  }
  CHECK(sum == peak.get<std::int64_t>("live_bytes"));
  CHECK(end <= peak.get<std::int64_t>("arena_bytes"));
  const Json first = facts({"inspect", folder, "--memory", "--at", "/0/Gemm"}, {});
  CHECK(first.get<int>("time") == 0);
  CHECK(first.get<int>("step") == 0);  // its older name
  CHECK(facts({"inspect", kMlp, "--memory", "--at", "0"}, {}).get<std::int64_t>("live_bytes") ==
        first.get<std::int64_t>("live_bytes"));
  CHECK(run({"inspect", folder, "--memory", "--at", "nothing"}).exit_code == 2);
  CHECK(run({"inspect", folder, "--at", "0"}).exit_code == 2);
  CHECK(run({"inspect", folder, "--memory", "--stage", "loss"}).exit_code == 2);
}

TEST_CASE("check: what would be trained") {
  const Json json = facts({"check", kMlp}, {});
  CHECK(json.get<bool>("trainable"));
  CHECK(json.get<std::int64_t>("parameter_elements") == 5786);
  CHECK(facts({"check", kMlp, "--train", "0.*"}, {}).array_at("parameters").size() == 2);
}

TEST_CASE("eval: a run equals its trained file, and validation=1 takes all data") {
  const std::string folder = mlp_run().string();
  const Json own = facts({"eval", folder}, {});
  CHECK(own.get<int>("examples") == 52);
  CHECK(own.get<double>("perplexity") == doctest::Approx(std::exp(own.get<double>("loss"))));
  const Json file = facts({"eval", folder + "/model.onnx", "--data", "synthetic"}, {});
  CHECK(file.get<double>("loss") == own.get<double>("loss"));
  const Json all = facts({"eval", folder, "--data", "synthetic,validation=1"}, {});
  CHECK(all.get<int>("examples") == 512);
  CHECK(run({"eval", kMlp}).exit_code == 2);
  CHECK(run({"eval", folder, "--sample", "5"}).exit_code == 2);
  CHECK(run({"eval", folder, "--temperature", "1"}).err ==
        "error: --temperature belongs to --sample\n");
}

TEST_CASE("eval: a last batch that cannot be padded is evaluated at its own size") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[B,4] x) => (float[B,2] y)"
      " <float[4,2] w = {1,2,3,4,5,6,7,8}> { y = MatMul(x, w) }",
      folder / "linear.onnx");
  const std::vector<std::string> words = {"eval",   "linear.onnx",
                                          "--loss", "mse:output=y",
                                          "--data", "synthetic,validation=1,examples=21"};
  const auto loss = [&](const std::string& batch) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--batch", batch});
    const Json json = facts(all, folder.path());
    CHECK(json.get<int>("examples") == 21);
    return json.get<double>("loss");
  };
  CHECK(loss("21") == doctest::Approx(loss("8")));
  CHECK(loss("21") == doctest::Approx(loss("1")));
}

TEST_CASE("export: trained model, stage, parameters") {
  const TemporaryFolder folder;
  const std::string source = mlp_run().string();
  facts({"export", source, "--format", "onnx", "-o", "trained.onnx"}, folder.path());
  const OnnxModel trained = OnnxModel::read(folder / "trained.onnx");
  facts({"export", source, "--format", "safetensors", "-o", "p.safetensors"}, folder.path());
  const SafetensorsFile parameters = SafetensorsFile::open(folder / "p.safetensors");
  CHECK(parameters.entries().size() == 6);
  for (const SafetensorsEntry& entry : parameters.entries()) {
    const Tensor a = parameters.tensor(entry.name);
    CHECK(std::ranges::equal(a.values<float>(), trained.initializer(entry.name)->values<float>()));
  }
  facts({"export", source, "--stage", "differentiate", "-o", "stage.onnx"}, folder.path());
  const OnnxModel stage = OnnxModel::read(folder / "stage.onnx");
  CHECK(stage.is_stage());
  CHECK(std::ranges::equal(stage.initializer("0.weight")->values<float>(),
                           trained.initializer("0.weight")->values<float>()));
  CHECK(
      run({"export", source, "--stage", "nothing", "-o", "x.onnx"}, {}, folder.path()).exit_code ==
      2);
  CHECK(run({"export", source}).exit_code == 2);
}

TEST_CASE("export: a run that was killed exports its newest checkpoint") {
  const TemporaryFolder folder;
  fs::copy(mlp_run(), folder / "killed", fs::copy_options::recursive);
  std::string manifest = read_text(folder / "killed/manifest.json");
  const std::size_t at = manifest.find("\"finished\"");
  REQUIRE(at != std::string::npos);
  manifest.replace(at, 10, "\"running\"");
  std::ofstream(folder / "killed/manifest.json") << manifest;
  fs::remove(folder / "killed/model.onnx");
  facts({"export", "killed", "-o", "x.onnx"}, folder.path());
  CHECK(read_text(folder / "x.onnx") == read_text(mlp_run() / "model.onnx"));
  CHECK(facts({"eval", "killed"}, folder.path()).get<double>("loss") ==
        doctest::Approx(facts({"eval", mlp_run().string()}, {}).get<double>("loss")));
}

TEST_CASE("gradients: writes loss, gradients and values") {
  const TemporaryFolder folder;
  const Json json = facts({"gradients", kMlp, "--meta", test_model("mlp/meta.json").string(),
                           "--tensors", test_model("mlp/reference.safetensors").string(), "--batch",
                           "0", "--dtype", "f64", "--values", "logits", "--out", "g.safetensors"},
                          folder.path());
  const SafetensorsFile file = SafetensorsFile::open(folder / "g.safetensors");
  CHECK(file.tensor("loss").values<double>()[0] == json.get<double>("loss"));
  CHECK(file.contains("grad:0.weight"));
  CHECK(file.contains("act:logits"));
  CHECK(file.contains("dact:logits"));
}

TEST_CASE("verify: a row for each tensor") {
  const Json json = facts({"verify", test_model("mlp").string()}, {});
  CHECK(json.get<int>("failed") == 0);
  CHECK(json.array_at("references")[0].array_at("rows").size() > 10);
}

// In the program, because only there everything is linked together.
TEST_CASE("verify: a convergence folder is followed to its end") {
  const Json json = facts({"verify", test_model("convergence-gpt2").string()}, {});
  CHECK(json.get<int>("failed") == 0);
  CHECK(json.array_at("references")[0].array_at("rows").size() == 7);
}

TEST_CASE("place: offsets for every row") {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.csv") << "id,lower,upper,size\na,0,2,64\nb,2,3,64\n";
  const Json json = facts({"place", "p.csv", "--out", "s.csv"}, folder.path());
  CHECK(json.get<int>("height_bytes") == 64);
  CHECK(read_text(folder / "s.csv") == "id,lower,upper,size,offset\na,0,2,64,0\nb,2,3,64,0\n");
}

TEST_CASE("place: what decided a layout, and what was asked to") {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.csv") << "id,lower,upper,size\na,0,2,64\nb,0,2,64\n";
  std::ofstream(folder / "q.csv") << "id,lower,upper,size\na,0,2,64\nb,1,3,64\n";
  const auto by = [&](const std::string& problem, const std::string& method) {
    return run({"place", problem, "--method", method, "--out", "s.csv"}, {}, folder.path()).out;
  };
  CHECK(by("p.csv", "all").find("; by stack (") != std::string::npos);
  for (const std::string method : {"exact", "ort_best_fit"}) {
    CAPTURE(method);
    CHECK(by("p.csv", method).find("; by stack, which leaves nothing to " + method + " (") !=
          std::string::npos);
  }
  CHECK(by("q.csv", "ort_best_fit").find("; by ort_best_fit (") != std::string::npos);
  const Json json = facts({"place", "p.csv", "--method", "exact", "--out", "s.csv"}, folder.path());
  CHECK(json.get<std::string>("method") == "stack");
  CHECK(json.get<std::string>("asked_method") == "exact");
}

TEST_CASE("remat: a plan within the budget, its bound, and the front") {
  const TemporaryFolder folder;
  // Node 2 needs node 1 alone; node 3 needs node 0 again, which is cheap to make.
  std::ofstream(folder / "p.csv") << "id,name,bytes,time,backward,inputs\n0,a,50,1,0,\n"
                                     "1,b,40,9,0,0\n2,loss,40,9,0,1\n3,d,10,9,1,0 2\n";
  const Json json =
      facts({"remat", "p.csv", "--budget", "100", "--out", "plan.csv"}, folder.path());
  CHECK(json.get<int>("peak_bytes") == 100);
  CHECK(json.get<int>("time") == 29);
  CHECK(json.get<int>("lower_bound_time") == 29);
  CHECK(json.get<bool>("proven"));
  CHECK(read_text(folder / "plan.csv") ==
        "compute,0\ncompute,1\nfree,0\ncompute,2\nfree,1\ncompute,0\ncompute,3\n");
  for (const std::string same : {"100B", "0.1KB", "100 B"}) {
    CAPTURE(same);
    CHECK(facts({"remat", "p.csv", "--budget", same}, folder.path()).get<int>("peak_bytes") == 100);
  }
  for (const std::string wrong : {"much", "0.5", "1001%", "%"}) {
    CAPTURE(wrong);
    const Finished refused = run({"remat", "p.csv", "--budget", wrong}, {}, folder.path());
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("expected a number of bytes, 1 or more, or up to 1000%") !=
          std::string::npos);
  }
  const Json saved = facts({"remat", "p.csv", "--budget", "100%", "--front"}, folder.path());
  CHECK(saved.get<int>("budget_bytes") == 130);
  CHECK(saved.get<double>("extra_percent") == 0);
  CHECK(saved.array_at("front").size() == 2);
}

TEST_CASE("text: train a character model, evaluate it, and let it write") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abcd\n";
  std::ofstream(folder / "text.txt") << text;
  facts({"model", "gpt2", "--layers", "1", "--heads", "2", "--embedding", "16", "--context", "8",
         "--vocab", "5", "--seed", "1", "-o", "gpt.onnx"},
        folder.path());
  facts({"train", "gpt.onnx", "--data", "text:text.txt", "--seq", "8", "--batch", "4", "--steps",
         "150", "--lr", "1e-2", "--run-dir", "r", "-q"},
        folder.path());
  CHECK(facts({"eval", "r"}, folder.path()).get<double>("loss") < 0.2);
  const Json json =
      facts({"eval", "r", "--sample", "10", "--temperature", "0", "--prompt", "ab"}, folder.path());
  CHECK(json.get<std::string>("sample") == "cd\nabcd\nab");
  CHECK(facts({"eval", "r", "--sample", "20"}, folder.path()).get<std::string>("sample") ==
        facts({"eval", "r", "--sample", "20"}, folder.path()).get<std::string>("sample"));
  const Finished unknown = run({"eval", "r", "--sample", "2", "--prompt", "x"}, {}, folder.path());
  CHECK(unknown.exit_code == 3);
  // More characters than the model knows ids for.
  std::ofstream(folder / "more.txt") << "abcdefgh" << text;
  CHECK(run({"train", "gpt.onnx", "--data", "text:more.txt", "--seq", "8", "--steps", "1"}, {},
            folder.path())
            .exit_code == 3);
}

}  // namespace
}  // namespace trainscope::test
