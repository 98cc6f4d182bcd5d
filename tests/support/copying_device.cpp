// Two mappings for each block: one that cannot be read, whose addresses are given out, and one with
// the bytes.
#include "tests/support/copying_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/exec/backends.h"
#include "kernels/api/device_with_kernels.h"

namespace trainscope::test {
namespace {

std::byte* map(std::size_t bytes, int protection) {
  void* memory = mmap(nullptr, std::max<std::size_t>(bytes, 1), protection,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

CopyingDevice::CopyingDevice(const CopyingOptions& options)
    : options_(options),
      cpu_(cpu_device()),
      facts_{.name = "copying",
             .device = {.name = "device memory", .alignment_bytes = options.alignment_bytes},
             .host = {.name = "host memory", .alignment_bytes = options.alignment_bytes},
             .replays = options.replays} {}

CopyingDevice::~CopyingDevice() {
  for (const auto& [address, block] : blocks_) {
    munmap(address, std::max<std::size_t>(block.bytes, 1));
    munmap(block.memory, std::max<std::size_t>(block.bytes, 1));
  }
}

DeviceStatus CopyingDevice::allocate(Space, std::size_t bytes, std::byte** memory) {
  std::byte* address = map(bytes, PROT_NONE);
  std::byte* bytes_of = map(bytes, PROT_READ | PROT_WRITE);
  if (address == nullptr || bytes_of == nullptr) {
    return {.code = DeviceStatus::Code::kOutOfMemory, .message = "no memory"};
  }
  blocks_.emplace(address, Block{bytes_of, bytes});
  *memory = address;
  return {};
}

void CopyingDevice::release(Space, std::byte* memory, std::size_t bytes) {
  for (const Stream stream : {kComputeStream, kTransferStream}) {
    do_until({.stream = stream, .ticket = queue(stream).given});
  }
  const auto found = blocks_.find(memory);
  munmap(memory, std::max<std::size_t>(bytes, 1));
  munmap(found->second.memory, std::max<std::size_t>(bytes, 1));
  blocks_.erase(found);
}

bool CopyingDevice::is_ours(const void* address) const { return real(address) != address; }

std::byte* CopyingDevice::real(const void* address) const {
  auto* byte = static_cast<std::byte*>(const_cast<void*>(address));
  auto block = blocks_.upper_bound(byte);
  if (block == blocks_.begin()) return byte;
  --block;
  const auto offset = static_cast<std::size_t>(byte - block->first);
  return offset <= block->second.bytes ? block->second.memory + offset : byte;
}

void CopyingDevice::give(Stream stream, Work work) {
  if (capturing_ != nullptr) {
    capturing_->list.emplace_back(stream, std::move(work));
    return;
  }
  if (const auto* copy = std::get_if<Copy>(&work)) {
    if (!is_ours(copy->to) || !is_ours(copy->from)) ++pending_host_copies_;
  }
  Queue& to = queue(stream);
  to.work.push_back(std::move(work));
  ++to.given;
  const bool early = options_.timing == Timing::kTransfersEarly && stream == kTransferStream;
  if (early) do_until({.stream = stream, .ticket = to.given});
}

void CopyingDevice::do_until(Event event) {
  Queue& from = queue(event.stream);
  while (from.done < event.ticket) {
    const Work work = std::move(from.work.front());
    from.work.pop_front();
    execute(work);
    ++from.done;
  }
}

RunArgs CopyingDevice::translated(const RunArgs& args, std::vector<TensorView>& views) const {
  views.assign(args.inputs.begin(), args.inputs.end());
  views.insert(views.end(), args.outputs.begin(), args.outputs.end());
  for (TensorView& view : views) view.data = real(view.data);
  const std::span all(views);
  return {.params = args.params,
          .inputs = all.first(args.inputs.size()),
          .outputs = all.subspan(args.inputs.size()),
          .workspace = real(args.workspace),
          .state = args.state,
          .threads = args.threads,
          .call = {.stream = args.call.stream}};
}

void CopyingDevice::execute(const Work& work) {
  if (const auto* copy = std::get_if<Copy>(&work)) {
    if (copy->bytes > 0) std::memmove(real(copy->to), real(copy->from), copy->bytes);
    if (!is_ours(copy->to) || !is_ours(copy->from)) --pending_host_copies_;
  } else if (const auto* fill = std::get_if<Fill>(&work)) {
    std::fill_n(real(fill->to), fill->bytes, fill->value);
  } else if (const auto* launch = std::get_if<Launch>(&work)) {
    run(*launch);
  } else {
    do_until(std::get<Wait>(work).event);
  }
}

void CopyingDevice::run(const Launch& launch) {
  std::vector<TensorView> views;
  DeviceStatus status =
      cpu_->launch(kComputeStream, *launch.kernel, translated(launch.args, views));
  if (!status.done() && failed_.done()) failed_ = std::move(status);
  ++launches_;
}

Fork CopyingDevice::fork() const {
  using Body = void (*)(void*, int);
  if (!options_.threads) return nullptr;
  if (options_.timing == Timing::kTransfersLate) {
    return [](int tiles, const ThreadWatch*, void* context, Body body) {
      for (int tile = tiles - 1; tile >= 0; --tile) body(context, tile);
    };
  }
  return [](int tiles, const ThreadWatch*, void* context, Body body) {
    for (int tile = 0; tile < tiles; ++tile) body(context, tile);
  };
}

DeviceStatus CopyingDevice::copy(Stream stream, std::byte* to, const std::byte* from,
                                 std::size_t bytes) {
  give(stream, Copy{to, from, bytes});
  return {};
}

DeviceStatus CopyingDevice::fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) {
  give(stream, Fill{to, value, bytes});
  return {};
}

DeviceStatus CopyingDevice::launch(Stream stream, const Kernel& kernel, const RunArgs& args) {
  give(stream, Launch{&kernel, args});
  return {};
}

Event CopyingDevice::record(Stream stream) {
  if (capturing_ == nullptr) return {.stream = stream, .ticket = queue(stream).given};
  const auto of_stream = [stream](const auto& entry) { return entry.first == stream; };
  const auto captured = std::ranges::count_if(capturing_->list, of_stream);
  return {.stream = stream,
          .ticket = capturing_->first_ticket[static_cast<std::size_t>(stream)] + captured};
}

DeviceStatus CopyingDevice::wait(Stream stream, Event event) {
  if (waits_++ != options_.skipped_wait) give(stream, Wait{event});
  return {};
}

DeviceStatus CopyingDevice::synchronize(Event event) {
  do_until(event);
  return std::exchange(failed_, {});
}

DeviceStatus CopyingDevice::begin_capture() {
  capturing_ = std::make_unique<Captured>();
  for (const Stream stream : {kComputeStream, kTransferStream}) {
    capturing_->first_ticket[static_cast<std::size_t>(stream)] = queue(stream).given;
  }
  return {};
}

DeviceStatus CopyingDevice::end_capture(std::unique_ptr<CapturedWork>* work) {
  *work = std::move(capturing_);
  return {};
}

// Events of the list are those of this replay: as many pieces of work later as it is.
DeviceStatus CopyingDevice::replay(const CapturedWork& work) {
  if (replayed_++ == options_.failing_replay) {
    return {.code = DeviceStatus::Code::kFailed, .message = "no"};
  }
  const auto& captured = static_cast<const Captured&>(work);
  const std::int64_t later[2] = {queues_[0].given - captured.first_ticket[0],
                                 queues_[1].given - captured.first_ticket[1]};
  for (auto [stream, one] : captured.list) {
    if (auto* wait = std::get_if<Wait>(&one)) {
      wait->event.ticket += later[static_cast<std::size_t>(wait->event.stream)];
    }
    give(stream, std::move(one));
  }
  return {};
}

DeviceStatus CopyingDevice::time(const Kernel& kernel, const RunArgs& args, double* seconds) {
  for (const Stream stream : {kComputeStream, kTransferStream}) {
    do_until({.stream = stream, .ticket = queue(stream).given});
  }
  std::vector<TensorView> views;
  return cpu_->time(kernel, translated(args, views), seconds);
}

DeviceHandle test_device() {
  const char* name = std::getenv("TRAINSCOPE_TEST_DEVICE");
  const std::string_view wanted = name == nullptr ? "cpu" : name;
  if (wanted == "copying") return std::make_shared<CopyingDevice>();
  if (wanted == "copying-early") {
    return std::make_shared<CopyingDevice>(CopyingOptions{.timing = Timing::kTransfersEarly});
  }
  return cpu_device();
}

DeviceHandle cpu_with(KernelTable kernels) {
  return device_with_kernels(cpu_device(), std::move(kernels));
}

}  // namespace trainscope::test
