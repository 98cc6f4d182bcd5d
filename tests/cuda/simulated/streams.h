// Streams, events and graphs of a simulated GPU. Work runs when the host waits for it, as late as
// CUDA allows, or with a seed at some moment and in some order that CUDA allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "tests/cuda/simulated/order_log.h"

namespace trainscope::simulated {

using Work = std::function<void()>;
class Stream;

// What was captured: work with what must be done before it, by index.
struct Graph {
  struct Node {
    Work work;
    std::vector<std::size_t> after;
    std::uint32_t stream = 0;  // of the capture: its number
  };
  std::uint32_t number = 0;  // from 1: a graph that is made ready has another one
  std::vector<Node> nodes;
};

// A capture goes on in every stream that has waited for work of it.
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool is_valid = true;
};

// Where an event was recorded last: in a stream, or in a capture behind some of its nodes.
struct Moment {
  Stream* stream = nullptr;
  bool done = false;
  double seconds = 0.0;  // when it was done, by the host's clock and what Streams::pass() added
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> nodes;
};

class Stream {
 public:
  std::shared_ptr<Capture> capture;     // null: none goes on
  std::vector<std::size_t> last_nodes;  // of the capture: what comes next is behind them
  std::uint32_t number = 0;

 private:
  friend class Streams;
  struct Item {
    Work work;                       // empty: it records or waits
    std::shared_ptr<Moment> record;  // null: it runs or waits
    std::shared_ptr<Moment> wait;
  };
  std::deque<Item> queue_;
};

enum class StreamError : std::uint8_t {
  kNone,
  kCapturing,     // the host must not wait for what is being captured
  kIsolation,     // a capture and what is outside of it are not ordered by events
  kOtherCapture,  // two captures meet
  kNotCapturing,
  kNotOrigin,  // the capture began in another stream
  kInvalid,    // an error came before
  kUnjoined,   // the origin does not wait for all that was captured
};

class Streams {
 public:
  // Of a graph's work that is ready, that of the stream of this number runs first; 0: none is
  // preferred.
  Streams(std::uint64_t seed, std::uint64_t first) : seed_(seed), first_(first), random_(seed) {}

  Stream* make();
  bool has(const Stream* stream) const;
  // Whether all work has run.
  bool are_idle() const;
  void destroy(Stream* stream);

  // Queues the work, or takes it into the stream's capture; `what` the log calls it.
  void add(Stream& stream, Work work, const char* what = "work");
  void record(Stream& stream, std::shared_ptr<Moment>& event);
  StreamError wait(Stream& stream, const std::shared_ptr<Moment>& event);
  // The host waits: work runs until there is no more, until the event is done.
  StreamError drain(Stream& stream);
  StreamError finish(const Moment& event);

  StreamError begin_capture(Stream& stream);
  StreamError end_capture(Stream& stream, std::shared_ptr<Graph>* graph);
  // All of its nodes, in an order that its edges allow; `begins` is told of each before.
  void run(const Graph& graph, const std::function<void(std::size_t node)>& begins);
  // Of work that runs: it takes so much longer by the events' clock, and the host no time.
  void pass(double seconds) { passed_seconds_ += seconds; }

 private:
  // The first item of the queue, and before it what it waits for.
  void advance(Stream& stream);
  void run_until(const Moment& event);
  // What might have run by now has, with a seed.
  void maybe_advance();
  std::size_t random_below(std::size_t count);

  const std::uint64_t seed_;
  const std::uint64_t first_;
  std::mt19937_64 random_;
  OrderLog log_;
  std::vector<std::unique_ptr<Stream>> streams_;
  double passed_seconds_ = 0.0;
  std::uint32_t numbers_ = 6;  // of streams: CUDA has some of its own before
};

}  // namespace trainscope::simulated
