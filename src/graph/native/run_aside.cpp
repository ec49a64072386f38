#include "graph/native/run_aside.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace xpuruntime::native {
namespace {

/// The runs that are under way. Libraries free what kernels use when the process ends.
class UnderWay {
 public:
  static UnderWay& all() {
    static UnderWay& one = *new UnderWay;  // threads may outlive everything
    return one;
  }
  void wait_at_exit() {
    std::call_once(registered_, [] { std::atexit([] { all().wait(); }); });
  }
  void begin() { ++runs_; }
  void end() { --runs_; }

 private:
  void wait() const {
    using namespace std::chrono_literals;
    for (auto waited = 0ms; waited < 10s && runs_ > 0 && process_ == getpid(); waited += 5ms)
      std::this_thread::sleep_for(5ms);
  }

  std::once_flag registered_;
  std::atomic<int> runs_{0};
  const pid_t process_ = getpid();  // a fork has none of the threads
};

struct Outcome {
  std::function<std::vector<Tensor>()> work = {};
  std::mutex mutex = {};
  std::condition_variable known = {};
  bool is_over = false;
  std::vector<Tensor> results = {};
  std::exception_ptr error = {};

  /// Lets go of the work before anybody knows that it is over: what it uses may go then.
  void find() {
    std::vector<Tensor> made;
    std::exception_ptr thrown;
    try {
      made = work();
    } catch (...) {
      thrown = std::current_exception();
    }
    work = {};
    const std::lock_guard lock(mutex);
    results = std::move(made);
    error = std::move(thrown);
    is_over = true;
    known.notify_all();
  }
};

/// Without the signals that the program handles: no handler runs in it. Whether there could be one more thread.
bool start_thread(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

std::vector<Tensor> run_aside(std::function<std::vector<Tensor>()> work, const Deadline& deadline) {
  const auto outcome = std::make_shared<Outcome>();
  outcome->work = std::move(work);
  UnderWay& under_way = UnderWay::all();
  under_way.begin();
  const auto body = [&under_way, outcome = outcome]() mutable {
    outcome->find();
    outcome.reset();
    under_way.end();
  };
  if (!start_thread(body)) {
    under_way.end();
    return outcome->work();
  }
  std::unique_lock lock(outcome->mutex);
  if (!outcome->known.wait_until(lock, deadline.end(), [&] { return outcome->is_over; })) {
    under_way.wait_at_exit();
    deadline.refuse();
  }
  // Taken out of it: the thread may be the last to have it.
  if (const std::exception_ptr error = std::exchange(outcome->error, nullptr)) std::rethrow_exception(error);
  return std::move(outcome->results);
}

}  // namespace xpuruntime::native
