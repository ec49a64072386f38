#pragma once

#include <chrono>
#include <string>
#include <vector>

// What a process and its worker say to each other over a socket: lists of byte strings.
//
//   {"probe"}                        -> {"devices", platform, device, multiple, ...}, three strings a device
//   {"fp16", platform, device}       -> {"yes"} or {"no"}
//   {"build", platform, device, options, source, "binary" or "check"}
//                                    -> {"built", binary}, or {"failed", code, log}
//   {"machine_code", platform, device, options, source, function, three global sizes, three local ones or zeros}
//                                    -> {"made", its file, or empty where it is not known}
//   where it cannot be made here     -> {"unknown"}
//   where it does not see the device -> {"unknown"}
//   where OpenCL is not installed    -> {"no_loader", text}
//   anything that went wrong         -> {"error", text}
//   before a step that may not end   -> {"at", what it is about to do}, and the answer later

// Platforms and devices go by their names: two processes may count them differently, and a program of one serves all
// of its name.

namespace xpuruntime::opencl {

using Message = std::vector<std::string>;
using Deadline = std::chrono::steady_clock::time_point;

enum class Received { message, closed, late };

/// Whether all of it was taken; false where the other side is gone.
bool send_message(int socket, const Message& message);
Received receive_message(int socket, Message& message, Deadline deadline);

}  // namespace xpuruntime::opencl
