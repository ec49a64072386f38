#include "backends/opencl/worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "core/child_process.h"
#include "core/environment_variable.h"
#include "core/printable.h"
#include "registry/shared_object.h"
#include "xpuruntime/core/error.h"

extern char** environ;

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t shown_output = 300;

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string entry = *at;
    if (!changes.contains(entry.substr(0, entry.find('=')))) all.push_back(entry);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

/// The end of what it printed, in one line: the first line of it often says more than the last.
std::string last_output(int file) {
  const off_t end = lseek(file, 0, SEEK_END);
  const off_t start = std::max<off_t>(0, end - static_cast<off_t>(shown_output));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, end - start)), '\0');
  const ssize_t got = pread(file, text.data(), text.size(), start);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  if (start > 0) text.erase(0, std::min(text.find('\n'), text.size()));  // the rest of a line that is cut off
  std::string joined;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size());
    if (next > at) joined += (joined.empty() ? "" : "; ") + text.substr(at, next - at);
    at = next + 1;
  }
  return printable(joined);
}

/// What may be there again the next time.
bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM; }

}  // namespace

/// How a process ended, by a thread that waits for nothing else: one that goes because nobody asks it leaves no zombie.
struct Worker::End {
  std::mutex mutex = {};
  std::condition_variable known = {};
  std::optional<int> status = {};  // -1: somebody else has taken it, or nobody is told as SIGCHLD is ignored

  void wait_for(pid_t process) {
    siginfo_t ended = {};
    while (waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    const std::lock_guard lock(mutex);
    int found = -1;
    status = waitpid(process, &found, WNOHANG) == process ? found : -1;
    known.notify_all();
  }
  /// With all that it started. Its number is nobody else's until its status is taken.
  void kill_group(pid_t process) {
    const std::lock_guard lock(mutex);
    if (!status) kill(-process, SIGKILL);
  }

  static std::shared_ptr<End> of(pid_t process) {
    auto end = std::make_shared<End>();
    // No handler of the program's runs in that thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([end, process] { end->wait_for(process); }).detach();
    } catch (const std::system_error&) {
      end = nullptr;  // too many threads; whoever stops it waits
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return end;
  }

  /// Nothing where it has not ended within this time.
  std::optional<int> within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    known.wait_for(lock, time, [this] { return status.has_value(); });
    return status;
  }
};

int worker_seconds() {
  const char* text = environment_variable("XPURUNTIME_OPENCL_TIMEOUT");
  if (text == nullptr || *text == '\0') return 60;
  char* end = nullptr;
  const long seconds = std::strtol(text, &end, 10);
  if (*end != '\0' || seconds < 1 || seconds > 3600)
    fail(ErrorCode::invalid_argument, "opencl",
         "XPURUNTIME_OPENCL_TIMEOUT is '" + printable(text) + "': set it to seconds, 1 to 3600");
  return static_cast<int>(seconds);
}

std::string Worker::default_program() { return parts_folder() + "/xpuruntime_opencl_worker"; }

Worker::Worker(std::map<std::string, std::string> environment, std::string program)
    : environment_(std::move(environment)), program_(std::move(program)) {}

Worker::~Worker() {
  if (process_ != 0) stop(true);
}

int Worker::start() {
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return errno;
  const int output = memfd_create("opencl_worker", MFD_CLOEXEC);
  int error = output < 0 ? errno : 0;
  if (error == 0) {
    const std::vector<std::string> variables = environment_with(environment_);
    std::vector<char*> pointers;
    for (const std::string& variable : variables) pointers.push_back(const_cast<char*>(variable.c_str()));
    pointers.push_back(nullptr);
    char* arguments[] = {program_.data(), nullptr};
    const SpawnSettings settings(pair[1], output);
    error =
        posix_spawn(&process_, program_.c_str(), &settings.actions, &settings.attributes, arguments, pointers.data());
  }
  close(pair[1]);
  if (error == 0) {
    socket_ = pair[0];
    output_ = output;
    end_ = End::of(process_);
    return 0;
  }
  close(pair[0]);
  if (output >= 0) close(output);
  process_ = 0;
  return error;
}

Answer Worker::stop(bool kill_it) {
  close(socket_);
  const bool waited_for = end_ != nullptr;
  if (!waited_for) end_ = std::make_shared<End>();
  bool killed_here = kill_it || !waited_for;
  if (killed_here) end_->kill_group(process_);
  if (!waited_for) end_->wait_for(process_);
  // It has closed the socket, so its end is near; a driver that closes what is not its own is not waited for.
  std::optional<int> ended = end_->within(std::chrono::seconds(2));
  if (!ended) {
    killed_here = true;
    end_->kill_group(process_);
    ended = end_->within(std::chrono::hours(1));
  }
  const int status = ended.value_or(-1);
  std::string printed = last_output(output_);
  if (!printed.empty()) printed.insert(0, ": ");
  close(output_);
  process_ = 0;
  if (status == -1 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
    return {Answer::State::crashed, {}, (status == -1 ? "ended" : ending_of(status)) + printed};
  if (killed_here) return {Answer::State::crashed, {}, "closed its connection" + printed};
  return {Answer::State::killed, {}, "was killed (signal 9), perhaps because memory ran out" + printed};
}

Answer Worker::ask_once(const Message& request, int seconds) {
  if (const int error = process_ == 0 ? start() : 0; error != 0) {
    const std::string why = std::system_category().message(error);
    return is_shortage(error)
               ? Answer{Answer::State::shortage, {}, "cannot be started now: " + why}
               : Answer{Answer::State::unavailable, {}, "its worker '" + program_ + "' could not be started: " + why};
  }
  Message whole = request;
  whole.push_back(std::to_string(seconds));
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::string about;
  Message message;
  Received received = send_message(socket_, whole) ? Received::message : Received::closed;
  while (received == Received::message) {
    received = receive_message(socket_, message, deadline);
    if (received != Received::message) break;
    if (message[0] != "at") return {Answer::State::answered, std::move(message)};
    about = message.size() > 1 ? message[1] + " " : "";
  }
  if (received == Received::late) {
    stop(true);
    return {Answer::State::late, {}, about + "gave no answer within " + std::to_string(seconds) + " s"};
  }
  Answer ended = stop(false);
  ended.why.insert(0, about);
  return ended;
}

Answer Worker::ask(const Message& request, int seconds) {
  const std::lock_guard lock(mutex_);
  const bool served_before = process_ != 0;
  Answer answer = ask_once(request, seconds);
  const bool gone = answer.state == Answer::State::crashed || answer.state == Answer::State::killed;
  // How it went is not always known: where SIGCHLD is ignored, nobody is told.
  return gone && served_before ? ask_once(request, seconds) : answer;
}

}  // namespace xpuruntime::opencl
