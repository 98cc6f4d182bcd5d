// The device interface by the CUDA runtime: events between streams, lists of work.
#include <utility>

#include "kernels/cuda/device/captured_graph.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/cuda/device/cuda_error.h"

namespace trainscope::cuda {

Event CudaDevice::record(Stream stream) {
  DeviceStatus status = select();
  const std::int64_t ticket = events(stream).record(capturing_, &status);
  if (!status.done() && unheard_.done()) unheard_ = std::move(status);
  return {.stream = stream, .ticket = ticket};
}

// A list of work begins after, and ends before, all else that its streams are given (replay). So a
// wait inside it for what came before it asks for nothing, and a wait behind it for one of its own
// moments is a wait for all that was given.
DeviceStatus CudaDevice::wait(Stream stream, Event event) {
  if (event.stream == stream || event.ticket == 0) return {};
  if (DeviceStatus status = select(); !status.done()) return status;
  const auto from = static_cast<std::size_t>(event.stream);
  if (capturing_ && event.ticket <= before_capture_[from]) return {};
  const StreamEvents::Moment& moment = events(event.stream).at(event.ticket);
  if (moment.captured && !capturing_) return order(event.stream, stream);
  return status_of(cudaStreamWaitEvent(native(stream), moment.event, 0), "cudaStreamWaitEvent",
                   stream);
}

DeviceStatus CudaDevice::synchronize(Event event) {
  if (DeviceStatus status = select(); !status.done()) return status;
  if (capturing_) {
    return {.code = DeviceStatus::Code::kFailed,
            .message = "the host cannot wait for work that is being captured"};
  }
  const StreamEvents::Moment& moment = events(event.stream).at(event.ticket);
  DeviceStatus status;
  if (event.ticket != 0 && moment.captured) {
    status = drain(event.stream);
  } else if (event.ticket != 0) {
    status = status_of(cudaEventSynchronize(moment.event), "cudaEventSynchronize", event.stream);
  }
  DeviceStatus unheard = std::exchange(unheard_, {});
  return status.done() ? unheard : status;
}

DeviceStatus CudaDevice::order(Stream earlier, Stream later) {
  DeviceStatus status =
      status_of(cudaEventRecord(meeting_, native(earlier)), "cudaEventRecord", earlier);
  if (!status.done()) return status;
  return status_of(cudaStreamWaitEvent(native(later), meeting_, 0), "cudaStreamWaitEvent", later);
}

DeviceStatus CudaDevice::drain(Stream stream) {
  return status_of(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize", stream);
}

DeviceStatus CudaDevice::drain_all() {
  if (DeviceStatus status = select(); !status.done()) return status;
  if (DeviceStatus status = drain(kTransferStream); !status.done()) return status;
  return drain(kComputeStream);
}

// Relaxed: libraries load their code, and may allocate, at a kernel's first call, which can be in a
// list; no other thread uses the device then, which the stricter modes guard against.
DeviceStatus CudaDevice::begin_capture() {
  if (DeviceStatus status = select(); !status.done()) return status;
  const cudaError_t error =
      cudaStreamBeginCapture(native(kComputeStream), cudaStreamCaptureModeRelaxed);
  if (error != cudaSuccess) return status_of(error, "cudaStreamBeginCapture", kComputeStream);
  for (std::size_t stream = 0; stream < 2; ++stream) {
    before_capture_[stream] = events_[stream].last_ticket();
  }
  // So that the list has both streams.
  DeviceStatus status = order(kComputeStream, kTransferStream);
  capturing_ = status.done();
  if (capturing_) return status;
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(native(kComputeStream), &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  return status;
}

DeviceStatus CudaDevice::end_capture(std::unique_ptr<CapturedWork>* work) {
  if (DeviceStatus status = select(); !status.done()) return status;
  DeviceStatus status = order(kTransferStream, kComputeStream);
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(native(kComputeStream), &graph);
  if (status.done()) status = status_of(ended, "cudaStreamEndCapture", kComputeStream);
  if (status.done()) {
    *work = CapturedGraph::instantiate(graph, &status);
  } else if (graph != nullptr) {
    (void)cudaGraphDestroy(graph);
  }
  return status;
}

// The whole list is one piece of work of both streams.
DeviceStatus CudaDevice::replay(const CapturedWork& work) {
  DeviceStatus status = select();
  if (status.done()) status = order(kTransferStream, kComputeStream);
  if (status.done()) {
    status = status_of(static_cast<const CapturedGraph&>(work).launch(native(kComputeStream)),
                       "cudaGraphLaunch", kComputeStream);
  }
  if (status.done()) status = order(kComputeStream, kTransferStream);
  return status;
}

}  // namespace trainscope::cuda
