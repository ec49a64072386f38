#include "graph/process/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/child_process.h"
#include "graph/process/python_path.h"
#include "xpuruntime/core/mutex.h"

extern char** environ;

namespace xpuruntime {
namespace process {
namespace {

constexpr const char* in_session = "Session";
constexpr int socket_of_helper = 3, memory_of_helper = 4;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;

std::vector<std::string> environment_of_helper(const std::string& path) {
  constexpr std::string_view variable = "PYTHONPATH=";
  std::vector<std::string> all;
  std::string python_path = path;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (!entry.starts_with(variable) || path.empty()) {
      all.emplace_back(entry);
    } else if (entry.size() > variable.size()) {
      python_path += ":" + std::string(entry.substr(variable.size()));
    }
  }
  if (!path.empty()) all.push_back(std::string(variable) + python_path);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Not one of the lowest numbers, which the helper's own files take the place of.
int moved_up(int file) {
  constexpr int first = 16;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, first);
  close(file);
  return moved;
}

/// The last line that it printed: of a traceback the error.
std::string last_line(int file) {
  std::array<char, 2048> text = {};
  const off_t size = lseek(file, 0, SEEK_END);
  const ssize_t got = pread(file, text.data(), text.size(), std::max<off_t>(0, size - static_cast<off_t>(text.size())));
  std::string_view all(text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  while (!all.empty() && all.back() == '\n') all.remove_suffix(1);
  return printable(std::string(all.substr(all.rfind('\n') + 1)));
}

ErrorCode code_named(const std::string& name) {
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::not_supported, ErrorCode::timeout,
                               ErrorCode::out_of_memory, ErrorCode::corrupt_data, ErrorCode::io_error}) {
    if (to_string(code) == name) return code;
  }
  return ErrorCode::device_error;
}

}  // namespace

HelperProcess::HelperProcess() {
  const Interpreter python = interpreter();
  int sockets[2] = {-1, -1}, lifeline[2] = {-1, -1};
  const int output = memfd_create("engine_process", MFD_CLOEXEC);
  const int shared = memfd_create("engine_memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Nobody makes it shorter while another reads it.
  int error = output >= 0 && shared >= 0 && fcntl(shared, F_ADD_SEALS, F_SEAL_SHRINK) == 0 &&
                      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0 &&
                      pipe2(lifeline, O_CLOEXEC) == 0
                  ? 0
                  : errno;
  if (error == 0) {
    const int socket = moved_up(sockets[1]), end = moved_up(lifeline[0]);
    const int memory = fcntl(shared, F_DUPFD_CLOEXEC, 16);
    std::vector<std::string> arguments = {python.program, "-m", "xpuruntime.engine_process",
                                          std::to_string(socket_of_helper), std::to_string(memory_of_helper)};
    std::vector<std::string> variables = environment_of_helper(python.path);
    SpawnSettings settings(end, output);  // the lifeline is its standard input
    settings.pass(socket, socket_of_helper);
    settings.pass(memory, memory_of_helper);
    error = posix_spawnp(&process_, python.program.c_str(), &settings.actions, &settings.attributes,
                         pointers_to(arguments).data(), pointers_to(variables).data());
    for (const int file : {socket, end, memory}) close(file);
  }
  socket_ = sockets[0];
  lifeline_ = lifeline[1];
  output_ = output;
  memory_ = shared;
  if (error == 0) return;
  process_ = 0;
  stop();
  fail(ErrorCode::not_supported, in_session,
       "Python ('" + printable(python.program) + "') could not be started: " + std::strerror(error) +
           "; set XRT_PYTHON to one that has this package and the engine's");
}

HelperProcess::~HelperProcess() { stop(); }

std::string HelperProcess::stop() {
  for (const int file : {socket_, lifeline_}) {
    if (file >= 0) close(file);
  }
  socket_ = lifeline_ = -1;
  std::string ending;
  if (process_ != 0) {
    int status = 0;
    if (generation_ == process_generation()) {  // else it is the parent's
      kill(-process_, SIGKILL);
      waitpid(process_, &status, 0);
    }
    ending = ending_of(status);
    process_ = 0;
  }
  if (output_ >= 0) {
    const std::string said = last_line(output_);
    if (!said.empty()) ending += ": " + said;
    close(output_);
  }
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  if (memory_ >= 0) close(memory_);
  mapped_ = nullptr;
  output_ = memory_ = -1;
  mapped_bytes_ = 0;
  return ending;
}

void HelperProcess::fail_late(const std::string& about) {
  stop();
  fail(ErrorCode::timeout, in_session, about);
}

void HelperProcess::fail_ended(const std::string& about) {
  // Its socket is closed, so its end is near.
  for (int i = 0; i < 100; ++i) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) break;
    poll(nullptr, 0, 10);
  }
  const std::string ending = stop();
  fail(ErrorCode::device_error, in_session, "the process of " + about + " " + ending);
}

/// False where the other side is gone.
bool HelperProcess::transfer(char* bytes, std::size_t size, bool sends, Clock::time_point end,
                             const std::string& about) {
  while (size > 0) {
    const ssize_t done =
        sends ? send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(socket_, bytes, size, MSG_DONTWAIT);
    if (done > 0) {
      bytes += done;
      size -= static_cast<std::size_t>(done);
      continue;
    }
    if (done == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) fail_late(about);
    pollfd wait = {socket_, static_cast<short>(sends ? POLLOUT : POLLIN), 0};
    poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left + 1, 60'000)));
  }
  return true;
}

Json HelperProcess::ask(const Json& request, Clock::time_point end, const std::string& about) {
  std::string text = dump_json(request);
  std::uint64_t size = text.size();
  const std::string late = about + " took too long and was stopped; allow more time in the execution policy";
  const auto move = [&](auto* bytes, std::size_t count, bool sends) {
    return transfer(reinterpret_cast<char*>(bytes), count, sends, end, late);
  };
  if (!alive() || !move(&size, sizeof size, true) || !move(text.data(), size, true) ||
      !move(&size, sizeof size, false) || size > most_bytes) {
    fail_ended(about);
  }
  text.resize(size);
  if (!move(text.data(), size, false)) fail_ended(about);
  Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object()) fail_ended(about);
  if (answer.contains("error")) {
    fail(code_named(answer.value("code", "")), in_session, answer["error"].get<std::string>());
  }
  return answer;
}

std::byte* HelperProcess::memory(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{1} << 16;
  if (bytes <= mapped_bytes_) return mapped_;
  struct stat now = {};
  const bool known = fstat(memory_, &now) == 0;
  const std::size_t size = std::max({bytes, least, known ? static_cast<std::size_t>(now.st_size) : 0});
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
  mapped_bytes_ = 0;
  void* const made = known && ftruncate(memory_, static_cast<off_t>(size)) == 0
                         ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0)
                         : MAP_FAILED;
  if (made == MAP_FAILED) {
    fail(ErrorCode::out_of_memory, in_session,
         std::to_string(bytes) + " bytes to share with an engine's process could not be had; run smaller inputs");
  }
  mapped_ = static_cast<std::byte*>(made);
  mapped_bytes_ = size;
  return mapped_;
}

std::span<const std::byte> HelperProcess::bytes_of(const Json& answer) {
  const auto offset = answer.value("offset", std::uint64_t{0}), size = answer.value("bytes", std::uint64_t{0});
  struct stat now = {};
  if (size == 0) return {};
  if (offset > most_bytes || size > most_bytes || fstat(memory_, &now) != 0 ||
      offset + size > static_cast<std::uint64_t>(now.st_size)) {
    fail(ErrorCode::device_error, in_session, "an engine's process announced bytes that are not there");
  }
  return {memory(offset + size) + offset, size};
}

}  // namespace process

}  // namespace xpuruntime
