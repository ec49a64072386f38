#include "tune/probe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "tune/contender.h"

namespace xpuruntime {
namespace {

/// What the child says, in memory that both see.
struct Report {
  enum State : int { running, ran, wrote_inputs, failed, exited };
  volatile int state = running;
  int code = 0;  // of a failed status, or of exit()
  char stage[16] = "prepare";
  char message[1000] = "";
  volatile std::size_t note_bytes = 0;
  char note[longest_note] = "";

  void say(State new_state, const char* text) {
    std::strncpy(message, text, sizeof message - 1);
    state = new_state;
  }
};

/// Memory that a child writes and its parent reads.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      fail(ErrorCode::out_of_memory, "probe",
           "no memory to share with a child process: " + std::string(std::strerror(errno)) + "; use smaller shapes");
    }
  }
  ~SharedMemory() { munmap(memory_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

constexpr std::size_t page = 4096;
std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

std::size_t bytes_for(const std::vector<Tensor>& outputs) {
  std::size_t bytes = whole_pages(sizeof(Report));
  for (const Tensor& output : outputs) bytes += whole_pages(output.span() + 64);
  return bytes;
}

/// Blank tensors like `outputs` in the shared memory, behind the report.
std::vector<Tensor> shared_outputs(const std::vector<Tensor>& outputs, const std::shared_ptr<SharedMemory>& memory) {
  std::vector<Tensor> shared;
  std::size_t place = whole_pages(sizeof(Report));
  for (const Tensor& output : outputs) {
    const TensorSpec& spec = output.spec();
    const std::size_t offset = spec.alignment < 16 ? spec.alignment : 0;
    std::memset(memory->data() + place, 0xff, output.span() + offset);
    shared.emplace_back(memory->data() + place, spec, output.device(), offset, memory);
    place += whole_pages(output.span() + 64);
  }
  return shared;
}

// The handler that is added last is called first: the parent's own must not run
// in the child.
Report* report_of_this_child = nullptr;
void report_exit(int code, void*) {
  report_of_this_child->code = code;
  report_of_this_child->state = Report::exited;
  _exit(1);
}

/// A crash shall end this process and leave nothing: no handler of the
/// parent's, no core file, nothing printed.
void become_quiet(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGALRM}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nowhere >= 0) dup2(nowhere, stream);
  }
}

void run_in_child(Report& report, const Kernel& kernel, const Problem& problem, const PrepareContext& context,
                  std::string_view token, const RunArguments& arguments, const std::function<bool()>& inputs_changed) {
  std::unique_ptr<const Plan> plan;
  Status status = contained("prepare", [&] {
    plan = kernel.prepare(problem, context, token);
    return Status();
  });
  if (status.ok()) {
    std::strcpy(report.stage, "run");
    status = contained("run", [&] { return plan->run(arguments); });
  }
  if (status.ok()) return report.say(inputs_changed() ? Report::wrote_inputs : Report::ran, "");
  report.code = static_cast<int>(status.code());
  report.say(Report::failed, status.message().c_str());
}

thread_local bool forking = false;
std::atomic<void (*)(std::string_view)> note_reader{nullptr};

enum class Ending { ended, hung, cancelled };

/// Waits for the child; one that takes too long is killed. It is gone when this
/// returns.
Ending wait_for(pid_t child, const ProbeSettings& settings, int& status) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(settings.timeout_s);
  Ending ending = Ending::ended;
  auto nap = std::chrono::microseconds(50);
  std::chrono::duration<double> slept = {};  // at least: the clock may stand still
  for (;;) {
    const pid_t gone = waitpid(child, &status, WNOHANG);
    if (gone == child) return ending;
    // Somebody else took its status, or the process ignores SIGCHLD: it is
    // gone, and the report says the rest.
    if (gone < 0 && errno != EINTR) {
      status = -1;
      return ending;
    }
    const bool stop = ending == Ending::ended && settings.keep_going && !settings.keep_going();
    if (ending == Ending::ended && (stop || Clock::now() > deadline || slept.count() > settings.timeout_s)) {
      ending = stop ? Ending::cancelled : Ending::hung;
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(nap);
    slept += nap;
    nap = std::min(nap * 2, std::chrono::microseconds(5000));
  }
}

/// Ends and takes leave of the child where what asks whether to go on throws.
class ChildGuard {
 public:
  explicit ChildGuard(pid_t child) : child_(child) {}
  ~ChildGuard() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;
  void release() { child_ = 0; }

 private:
  pid_t child_;
};

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return "it crashed with signal " + std::to_string(signal) +
         (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
}

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

std::string failure_of(const Report& report, Ending ending, int status, const ProbeSettings& settings) {
  const std::string in_stage = " in " + std::string(report.stage, strnlen(report.stage, sizeof report.stage));
  if (ending == Ending::hung) return "it did not return within " + seconds_text(settings.timeout_s) + in_stage;
  if (report.state == Report::exited) {
    return "it ended the process with exit code " + std::to_string(report.code) + in_stage;
  }
  if (status != -1 && WIFSIGNALED(status)) return signal_text(WTERMSIG(status)) + in_stage;
  switch (report.state) {
    case Report::ran:
    case Report::failed:
      return "";
    case Report::wrote_inputs:
      return wrote_to_its_inputs;
    default:
      break;
  }
  const std::string code = status != -1 && WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) : "unknown";
  return "it ended the process with exit code " + code + in_stage;
}

}  // namespace

bool forking_to_probe() { return forking; }

bool leave_note(std::string_view note) {
  Report* const report = report_of_this_child;
  if (report == nullptr) return false;
  report->note_bytes = 0;
  const std::size_t bytes = std::min(note.size(), longest_note);
  std::memcpy(report->note, note.data(), bytes);
  report->note_bytes = bytes;
  return true;
}

void set_note_reader(void (*reader)(std::string_view)) { note_reader.store(reader); }

ProbeResult probe_in_child(const Kernel& kernel, const Problem& problem, const PrepareContext& context,
                           const Operands& operands, void* workspace, const ProbeSettings& settings) {
  const auto memory = std::make_shared<SharedMemory>(bytes_for(operands.outputs()));
  auto* const report = new (memory->data()) Report;
  const Operands shared(operands.inputs(), shared_outputs(operands.outputs(), memory));
  const RunArguments arguments{shared.input_pointers(), shared.output_pointers(), workspace, {}};

  const pid_t parent = getpid();
  forking = true;
  const pid_t child = fork();
  forking = false;
  if (child < 0) {
    fail(ErrorCode::device_error, "probe",
         "no child process could be started: " + std::string(std::strerror(errno)) +
             "; end some processes, or turn isolation off");
  }
  if (child == 0) {
    become_quiet(parent);
    report_of_this_child = report;
    on_exit(report_exit, nullptr);
    run_in_child(*report, kernel, problem, context, settings.token, arguments,
                 [&] { return settings.inputs_hash && hash_of_inputs(shared) != *settings.inputs_hash; });
    _exit(0);
  }
  ChildGuard guard(child);
  int status = 0;
  const Ending ending = wait_for(child, settings, status);
  guard.release();

  ProbeResult result;
  result.cancelled = ending == Ending::cancelled;
  if (result.cancelled) return result;
  const std::string_view note(report->note, std::min(std::size_t{report->note_bytes}, longest_note));
  if (const auto read = note_reader.load(); read != nullptr && !note.empty()) read(note);
  // Not by us: the system does that when memory runs short, a user to whatever he likes.
  result.killed = ending == Ending::ended && status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  result.failure = failure_of(*report, ending, status, settings);
  if (result.failure.empty() && report->state == Report::failed) {
    const std::string message(report->message, strnlen(report->message, sizeof report->message));
    result.status = Status(static_cast<ErrorCode>(report->code), message);
  }
  if (result.failure.empty() && result.status.ok()) result.outputs = shared.outputs();
  return result;
}

}  // namespace xpuruntime
