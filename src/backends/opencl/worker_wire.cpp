#include "backends/opencl/worker_wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace xpuruntime::opencl {
namespace {

constexpr std::uint64_t longest_message = std::uint64_t{1} << 30;

void append(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

Received receive_bytes(int socket, char* to, std::size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting = {socket, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1 << 30)));
    if (ready == 0) return Received::late;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t got = ready < 0 ? -1 : recv(socket, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

}  // namespace

bool send_message(int socket, const Message& message) {
  std::string bytes;
  append(bytes, 0);
  for (const std::string& part : message) {
    append(bytes, part.size());
    bytes += part;
  }
  const std::uint64_t length = bytes.size() - sizeof length;
  std::memcpy(bytes.data(), &length, sizeof length);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    sent += static_cast<std::size_t>(now);
  }
  return true;
}

Received receive_message(int socket, Message& message, Deadline deadline) {
  message.clear();
  std::uint64_t length = 0;
  Received state = receive_bytes(socket, reinterpret_cast<char*>(&length), sizeof length, deadline);
  if (state != Received::message) return state;
  if (length > longest_message) return Received::closed;
  std::string bytes(length, '\0');
  state = receive_bytes(socket, bytes.data(), bytes.size(), deadline);
  for (std::size_t at = 0; state == Received::message && at < bytes.size();) {
    std::uint64_t part = 0;
    if (bytes.size() - at < sizeof part) return Received::closed;
    std::memcpy(&part, bytes.data() + at, sizeof part);
    at += sizeof part;
    if (part > bytes.size() - at) return Received::closed;
    message.push_back(bytes.substr(at, part));
    at += part;
  }
  return state == Received::message && message.empty() ? Received::closed : state;
}

}  // namespace xpuruntime::opencl
