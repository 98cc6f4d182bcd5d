// Cluster requests, and the files of measured times.
#include "engine/recompute/clusters.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "engine/core/error.h"
#include "engine/recompute/costs.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

std::string message_of(std::string_view requests) {
  try {
    parse_cluster_requests(requests);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
  return "accepted";
}

std::unique_ptr<Compiled> compiled(std::string_view name) {
  const ReferenceModel reference(name);
  return compile(reference.model, reference.options(GraphMode::kTrain));
}

}  // namespace

TEST_CASE("clusters: requests have the form OPS:KIND:COUNT") {
  const std::vector<ClusterRequest> requests = parse_cluster_requests("Add+Gelu+:1:-1, Mul+:2:3");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].id == "Add+Gelu+");
  CHECK(requests[0].kind == 1);
  CHECK(requests[0].count == -1);
  CHECK(requests[1].id == "Mul+");
  CHECK(requests[1].kind == 2);
  CHECK(requests[1].count == 3);
  for (const char* bad : {"", "Add+", "Add+:1", "Add+:3:1", "Add+:1:-2", "Add+:x:1", ":1:1",
                          "Add+:1:1,", "Add+:1:1:1"}) {
    CAPTURE(bad);
    CHECK(message_of(bad).find("is no recompute request") != std::string::npos);
  }
}

TEST_CASE("clusters: a count takes the first places, an unknown id names the nearest") {
  const std::unique_ptr<Compiled> step = compiled("gpt2");
  const Graph& graph = step->program.graph;
  const StepModel model = step_model(step->program, modelled_seconds(graph, default_machine()));
  const std::vector<Cluster> clusters = find_clusters(graph, model);
  REQUIRE(!clusters.empty());
  const Cluster* several = nullptr;
  for (const Cluster& each : clusters) {
    if (each.kind == ClusterKind::kRecompute && each.uses.size() > 1) several = &each;
    for (const ClusterUse& use : each.uses) {
      CHECK(use.saved_bytes > 0);
      for (int unit : use.recomputed) CHECK(model.units[static_cast<std::size_t>(unit)].forward);
    }
  }
  REQUIRE(several != nullptr);
  const ClusterRequest one{.id = several->id, .kind = 1, .count = 1};
  const std::vector<bool> recomputed = requested_units(model, clusters, std::vector{one});
  CHECK(std::ranges::count(recomputed, true) ==
        static_cast<std::ptrdiff_t>(several->uses.front().recomputed.size()));
  const ClusterRequest unknown{.id = several->id + "x"};
  CHECK_THROWS_WITH_AS(requested_units(model, clusters, std::vector{unknown}),
                       doctest::Contains("there is no recompute cluster"), Error);
}

TEST_CASE("costs: measured times come back, a foreign or broken file is refused") {
  const std::unique_ptr<Compiled> step = compiled("mlp");
  const Graph& graph = step->program.graph;
  std::vector<double> seconds = modelled_seconds(graph, default_machine());
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trainscope-costs-test-" + std::to_string(getpid()) + ".csv");
  write_node_seconds(path, graph, seconds);
  const std::vector<double> back = read_node_seconds(path, graph);
  for (NodeId id : graph.order()) {
    const auto i = static_cast<std::size_t>(id);
    CHECK(back[i] == doctest::Approx(seconds[i]));
  }
  CHECK_THROWS_WITH_AS(read_node_seconds(path, compiled("lenet")->program.graph),
                       doctest::Contains("no time for"), Error);
  for (const char* bad :
       {"", "time,value\n", "value,seconds\nx\n", "value,seconds\nx,fast\n",
        "value,seconds\nx,-1\n", "value,seconds\nx,inf\n", "value,seconds\nx,1\nx,2\n"}) {
    CAPTURE(bad);
    std::ofstream(path) << bad;
    CHECK_THROWS_AS(read_node_seconds(path, graph), Error);
  }
  std::filesystem::remove(path);
}

}  // namespace trainscope::test
