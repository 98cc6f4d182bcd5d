// How the engine gets a back end's device: from a folder that is linked, or out of a library that
// is loaded when somebody asks for its device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/api/communicator.h"
#include "kernels/api/device.h"
#include "kernels/api/device_tracer.h"

namespace trainscope {

// A device, or why there is none. Not to have one is a normal state of a machine.
struct MadeDevice {
  DeviceHandle device;
  std::string why_not = {};
};

// The channel between the ranks' devices, of which one is this process's, or why there is none.
struct MadeChannel {
  std::shared_ptr<Communicator> channel;
  std::string why_not = {};
};

// What records a device's work, or why nothing does. Lives as long as the process.
struct MadeTracer {
  DeviceTracer* tracer = nullptr;
  std::string why_not = {};
};

// What a back end that is a library of its own exports, through one C function of the name
// kBackEndFunction. Its first two fields never move: who loads the library reads them before it
// uses the others. The library is built by a compiler with the program's C++ interface.
struct BackEndLibrary {
  std::size_t bytes = sizeof(BackEndLibrary);  // of this struct, as the library was built
  int version = kDeviceVersion;                // of the device interface that it was built for
  // The device of this number, which is never given back; null where there is none, with the reason
  // as text that ends within `why_bytes`.
  Device* (*make_device)(int number, char* why, std::size_t why_bytes) = nullptr;
  // What the device is and runs with, a line each.
  void (*describe)(const Device& device, char* text, std::size_t text_bytes) = nullptr;
  // The channel between this device and those of the other ranks, whose hosts `hosts` connects and
  // which stays as long; the caller's to delete. Null where there is none, with the reason.
  Communicator* (*make_channel)(Device& device, Communicator& hosts, char* why,
                                std::size_t why_bytes) = nullptr;
  // What records this device's work, never given back; null where nothing does, with the reason.
  DeviceTracer* (*make_tracer)(Device& device, char* why, std::size_t why_bytes) = nullptr;
};

inline constexpr const char* kBackEndFunction = "trainscope_back_end";
using BackEndFunction = const BackEndLibrary* (*)();

}  // namespace trainscope
