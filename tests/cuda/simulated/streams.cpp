// Queues of work, ordered by events alone.
#include "tests/cuda/simulated/streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trainscope::simulated {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void join(std::vector<std::size_t>& nodes, const std::vector<std::size_t>& others) {
  nodes.insert(nodes.end(), others.begin(), others.end());
  std::ranges::sort(nodes);
  const auto repeated = std::ranges::unique(nodes);
  nodes.erase(repeated.begin(), repeated.end());
}

// Whether all nodes are these or come before them.
bool all_lead_to(const Graph& graph, const std::vector<std::size_t>& last) {
  std::vector<bool> reached(graph.nodes.size(), false);
  std::vector<std::size_t> open = last;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    const std::vector<std::size_t>& after = graph.nodes[node].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return std::ranges::all_of(reached, [](bool it) { return it; });
}

}  // namespace

Stream* Streams::make() {
  streams_.push_back(std::make_unique<Stream>());
  streams_.back()->number = ++numbers_;
  return streams_.back().get();
}

bool Streams::has(const Stream* stream) const {
  return std::ranges::any_of(streams_, [&](const auto& each) { return each.get() == stream; });
}

bool Streams::are_idle() const {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    for (const Stream::Item& item : stream->queue_) {
      if (item.work) return false;
    }
  }
  return true;
}

void Streams::destroy(Stream* stream) {
  (void)drain(*stream);
  std::erase_if(streams_, [&](const auto& each) { return each.get() == stream; });
}

void Streams::add(Stream& stream, Work work, const char* what) {
  log_.add(what, stream.number);
  if (stream.capture != nullptr) {
    Graph& graph = *stream.capture->graph;
    graph.nodes.push_back(
        {.work = std::move(work), .after = stream.last_nodes, .stream = stream.number});
    stream.last_nodes = {graph.nodes.size() - 1};
    return;
  }
  stream.queue_.push_back({.work = std::move(work), .record = nullptr, .wait = nullptr});
  maybe_advance();
}

void Streams::record(Stream& stream, std::shared_ptr<Moment>& event) {
  event = std::make_shared<Moment>();
  event->stream = &stream;
  log_.add("record", stream.number, event.get());
  if (stream.capture != nullptr) {
    event->capture = stream.capture;
    event->nodes = stream.last_nodes;
    return;
  }
  stream.queue_.push_back({.work = {}, .record = event, .wait = nullptr});
}

StreamError Streams::wait(Stream& stream, const std::shared_ptr<Moment>& event) {
  log_.add("wait", stream.number, event.get());
  if (event == nullptr) return StreamError::kNone;  // never recorded: nothing to wait for
  if (event->capture == nullptr) {
    if (stream.capture != nullptr) {
      stream.capture->is_valid = false;
      return StreamError::kIsolation;
    }
    stream.queue_.push_back({.work = {}, .record = nullptr, .wait = event});
    return StreamError::kNone;
  }
  if (event->capture->origin == nullptr) return StreamError::kIsolation;  // it has ended
  if (stream.capture != nullptr && stream.capture != event->capture) {
    stream.capture->is_valid = false;
    return StreamError::kOtherCapture;
  }
  stream.capture = event->capture;
  stream.capture->streams.insert(&stream);
  join(stream.last_nodes, event->nodes);
  return StreamError::kNone;
}

void Streams::advance(Stream& stream) {
  const Stream::Item item = std::move(stream.queue_.front());
  if (item.wait != nullptr) run_until(*item.wait);
  stream.queue_.pop_front();
  if (item.work) item.work();
  if (item.record == nullptr) return;
  item.record->done = true;
  item.record->seconds = now() + passed_seconds_;
}

std::size_t Streams::random_below(std::size_t count) {
  return static_cast<std::size_t>(random_() % count);
}

void Streams::maybe_advance() {
  if (seed_ == 0) return;
  while (random_below(2) == 0) {
    Stream& stream = *streams_[random_below(streams_.size())];
    if (!stream.queue_.empty()) advance(stream);
  }
}

StreamError Streams::drain(Stream& stream) {
  if (stream.capture != nullptr) {
    stream.capture->is_valid = false;
    return StreamError::kCapturing;
  }
  log_.add("drain", stream.number);
  maybe_advance();
  while (!stream.queue_.empty()) advance(stream);
  return StreamError::kNone;
}

void Streams::run_until(const Moment& event) {
  while (!event.done) advance(*event.stream);
}

StreamError Streams::finish(const Moment& event) {
  if (event.capture != nullptr) return StreamError::kCapturing;
  log_.add("finish", 0, &event);
  run_until(event);
  return StreamError::kNone;
}

StreamError Streams::begin_capture(Stream& stream) {
  if (stream.capture != nullptr) return StreamError::kCapturing;
  stream.capture = std::make_shared<Capture>();
  stream.capture->origin = &stream;
  stream.capture->streams = {&stream};
  log_.add("begin", stream.number);
  return StreamError::kNone;
}

StreamError Streams::end_capture(Stream& stream, std::shared_ptr<Graph>* graph) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return StreamError::kNotCapturing;
  if (capture->origin != &stream) return StreamError::kNotOrigin;
  log_.add("end", stream.number);
  const bool all = all_lead_to(*capture->graph, stream.last_nodes);
  for (Stream* each : capture->streams) {
    each->capture = nullptr;
    each->last_nodes.clear();
  }
  capture->origin = nullptr;
  if (!capture->is_valid) return StreamError::kInvalid;
  if (!all) return StreamError::kUnjoined;
  *graph = capture->graph;
  return StreamError::kNone;
}

// Without a seed the newest of what is ready runs first.
void Streams::run(const Graph& graph, const std::function<void(std::size_t)>& begins) {
  std::vector<std::size_t> missing(graph.nodes.size());
  std::vector<std::vector<std::size_t>> followers(graph.nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    missing[node] = graph.nodes[node].after.size();
    for (const std::size_t before : graph.nodes[node].after) followers[before].push_back(node);
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    if (seed_ != 0) std::swap(ready[random_below(ready.size())], ready.back());
    const auto preferred = std::ranges::find_if(
        ready, [&](std::size_t node) { return graph.nodes[node].stream == first_; });
    if (preferred != ready.end()) std::swap(*preferred, ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    begins(node);
    graph.nodes[node].work();
    for (const std::size_t next : followers[node]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
}

}  // namespace trainscope::simulated
