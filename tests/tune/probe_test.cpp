#include "tune/probe.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tune/made_up_kernels.h"
#include "xpuruntime/tune/tuner.h"

extern "C" [[gnu::weak]] void __asan_init();  // of programs that the address sanitizer is in

namespace xpuruntime {
namespace {

using testing::relu;

const Problem problem = parse_problem("relu(f32[64])");

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

/// Whatever a kernel did in its child: nothing of it may be left here.
class ProbeTest : public ::testing::Test, protected testing::MadeUpMachine {
 protected:
  ProbeTest() {
    add("reference", 300);
    options.probe_timeout_s = 5;
    open_before = open_files();
  }
  ~ProbeTest() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(open_files(), open_before);
  }

  /// What the tuner says of a kernel that does this; the reference must win.
  std::string reason_of(std::function<Status(const RunArguments&)> work) {
    add("bad", 1, std::move(work));
    const TuneResult result = Tuner(registry, [this] { return now_us; }).tune(problem, "bad", options);
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "bad");
    EXPECT_EQ(result.chosen, "reference");
    for (const TunedCandidate& candidate : result.candidates) {
      if (candidate.kernel != "bad") continue;
      EXPECT_EQ(candidate.outcome, TuneOutcome::quarantined);
      return candidate.reason;
    }
    return "no row";
  }

  TuneOptions options;
  std::size_t open_before = 0;
};

std::atomic<int> forks_to_probe{0};
std::atomic<int> other_forks{0};

TEST_F(ProbeTest, HandlersOfForksCanTellThatAKernelIsTried) {
  pthread_atfork([] { ++(forking_to_probe() ? forks_to_probe : other_forks); }, nullptr, nullptr);
  reason_of([](const RunArguments&) { return Status(ErrorCode::device_error, "no"); });
  EXPECT_EQ(forks_to_probe, 2);  // for each of the two kernels
  EXPECT_EQ(other_forks, 0);
  EXPECT_FALSE(forking_to_probe());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(forks_to_probe, 2);
  EXPECT_EQ(other_forks, 1);
}

std::string note_read;

TEST_F(ProbeTest, BringsTheNoteOfAChildToItsParentAlone) {
  EXPECT_FALSE(leave_note("here"));
  set_note_reader([](std::string_view note) { note_read = note; });
  reason_of([](const RunArguments&) {
    leave_note("first");
    return leave_note("second" + std::string(longest_note, '.')) ? Status(ErrorCode::device_error, "no") : Status();
  });
  set_note_reader(nullptr);
  EXPECT_EQ(note_read, "second" + std::string(longest_note - 6, '.'));
  reason_of([](const RunArguments&) { return Status(ErrorCode::device_error, leave_note("unread") ? "no" : "yes"); });
  EXPECT_EQ(note_read.substr(0, 6), "second");
}

TEST_F(ProbeTest, WhatAKernelRefusesInItsChildIsARefusal) {
  add("late", 1, [](const RunArguments&) { return Status(ErrorCode::not_supported, "not this one"); });
  const TuneResult result = Tuner(registry, [this] { return now_us; }).tune(problem, "reference", options);
  EXPECT_EQ(result.candidates.front().kernel, "late");
  EXPECT_EQ(result.candidates.front().outcome, TuneOutcome::refused);
  EXPECT_EQ(result.candidates.front().reason, "not this one");
}

TEST_F(ProbeTest, ALostDeviceSaysNothingAboutAKernel) {
  add("late", 1, [](const RunArguments&) { return Status(ErrorCode::device_lost, "it fell off the bus"); });
  try {
    Tuner(registry, [this] { return now_us; }).tune(problem, "reference", options);
    ADD_FAILURE() << "it was tuned all the same";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_lost);
  }
}

TEST_F(ProbeTest, SurvivesACrash) {
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status {
              raise(SIGSEGV);
              return {};
            }),
            "it crashed with signal 11 (SIGSEGV) in run");
}
TEST_F(ProbeTest, SurvivesAnAbort) {
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status { std::abort(); }),
            "it crashed with signal 6 (SIGABRT) in run");
}
TEST_F(ProbeTest, SurvivesADivisionByZero) {
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status {
              raise(SIGFPE);
              return {};
            }),
            "it crashed with signal 8 (SIGFPE) in run");
}
TEST_F(ProbeTest, SurvivesTheEndOfTheProcess) {
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status { std::exit(3); }),
            "it ended the process with exit code 3 in run");
}
TEST_F(ProbeTest, SurvivesAQuietEndOfTheProcess) {
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status { _exit(4); }), "it ended the process with exit code 4 in run");
}
TEST_F(ProbeTest, IsNotTakenInByAnExitCodeOfZero) {
  EXPECT_EQ(reason_of([](const RunArguments& arguments) -> Status {
              if (relu(arguments).ok()) _exit(0);
              return {};
            }),
            "it ended the process with exit code 0 in run");
}
TEST_F(ProbeTest, SurvivesAKernelThatNeverReturns) {
  options.probe_timeout_s = 0.2;
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status {
              for (;;) pause();
            }),
            "it did not return within 0.2 s in run");
}
TEST_F(ProbeTest, SurvivesAKernelThatNeverReturnsAndBlocksSignals) {
  options.probe_timeout_s = 0.2;
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status {
              sigset_t all;
              sigfillset(&all);
              sigprocmask(SIG_SETMASK, &all, nullptr);
              for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }),
            "it did not return within 0.2 s in run");
}

// The system ends who asks for too much memory; that another day is a good one must not be forgotten.
TEST_F(ProbeTest, DoesNotBrandAKernelThatSomebodyElseKilled) {
  add("bad", 1, [](const RunArguments&) -> Status {
    raise(SIGKILL);
    return {};
  });
  const TuneResult result = Tuner(registry, [this] { return now_us; }).tune(problem, "bad", options);
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(result.candidates[0].kernel, "bad");
  EXPECT_EQ(result.candidates[0].outcome, TuneOutcome::refused);
  EXPECT_EQ(result.candidates[0].reason, "it was killed, perhaps for lack of memory");
  EXPECT_TRUE(result.record(1).quarantine.empty());
}

TEST_F(ProbeTest, KeepsTheParentsMemoryAsItIs) {
  int touched = 0;
  EXPECT_EQ(reason_of([&](const RunArguments& arguments) -> Status {
              ++touched;
              const_cast<float*>(arguments.inputs[0]->as<const float>())[0] = 1e9F;
              std::abort();
            }),
            "it crashed with signal 6 (SIGABRT) in run");
  EXPECT_EQ(touched, 0);
}

TEST_F(ProbeTest, DoesNotRunTheParentsExitHandlers) {
  static bool in_test = true;  // a handler that ran in the child would end it by a signal instead of by code 5
  std::atexit([] {
    if (in_test) std::abort();
  });
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status { std::exit(5); }),
            "it ended the process with exit code 5 in run");
  in_test = false;
}

TEST_F(ProbeTest, LetsAGoodKernelWin) {
  add("good", 10);
  const TuneResult result = Tuner(registry, [this] { return now_us; }).tune(problem, "reference", options);
  EXPECT_EQ(result.chosen, "good");
}

TEST_F(ProbeTest, RunsOurOwnKernelsHere) {
  DeviceManager others;
  KernelRegistry own(others);
  own.add_backend(make_cpu_backend(), KernelOrigin::built_in);
  for (const auto& kernel : own.kernels(OpId::relu, DeviceType::cpu)) {
    EXPECT_EQ(own.origin(*kernel), KernelOrigin::built_in);
  }
  for (const auto& kernel : registry.kernels(OpId::relu, DeviceType::cpu)) {
    EXPECT_EQ(registry.origin(*kernel), KernelOrigin::third_party);
  }
}

TEST_F(ProbeTest, CanBeCancelledWhileAKernelHangs) {
  add("bad", 1, [](const RunArguments&) -> Status {
    for (;;) pause();
  });
  options.probe_timeout_s = 600;
  int calls = 0;
  options.progress = [&](const TuneProgress&) { return ++calls < 20; };
  EXPECT_TRUE(Tuner(registry).tune(problem, "bad", options).cancelled);
}

TEST_F(ProbeTest, EndsTheChildWhenTheProgressThrows) {
  add("bad", 1, [](const RunArguments&) -> Status {
    for (;;) pause();
  });
  options.probe_timeout_s = 600;
  int calls = 0;
  options.progress = [&](const TuneProgress&) -> bool {
    if (++calls == 20) throw std::runtime_error("enough");
    return true;
  };
  EXPECT_THROW(Tuner(registry).tune(problem, "bad", options), std::runtime_error);
}

TEST_F(ProbeTest, WorksWhereNobodyWaitsForChildren) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(reason_of([](const RunArguments&) -> Status { std::exit(3); }),
            "it ended the process with exit code 3 in run");
  add("good", 10);
  EXPECT_EQ(Tuner(registry, [this] { return now_us; }).tune(problem, "reference", options).chosen, "good");
  std::signal(SIGCHLD, before);
}

TEST_F(ProbeTest, WorksWhileOtherThreadsAllocateAndLock) {
  if (&__asan_init != nullptr) GTEST_SKIP() << "the sanitizer may hang in forks of processes with threads";
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard lock(mutex);
        const std::vector<int> waste(1000);
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(reason_of([](const RunArguments&) -> Status { throw std::runtime_error("oh"); }),
              "it failed: the kernel threw: oh");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProbeTest, ShowsWhatTheChildWroteAtTheProblemsAlignment) {
  Problem odd = parse_problem("relu(f32[64])");
  odd.inputs[0].alignment = odd.outputs[0].alignment = 4;
  const Operands operands = random_operands(devices, odd, 1);
  FunctionKernel kernel;
  kernel.op = OpId::relu;
  kernel.name = "looks";
  kernel.run = [](const Problem&, const RunArguments& arguments) {
    const auto address = reinterpret_cast<std::uintptr_t>(arguments.outputs[0]->as<float>());
    return address % 8 == 4 ? relu(arguments) : Status(ErrorCode::device_error, "aligned");
  };
  const ProbeResult probed = probe_in_child(*make_kernel(kernel), odd,
                                            {Device{}, devices.profile({}), devices.driver({})}, operands, nullptr, {});
  ASSERT_EQ(probed.failure, "");
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(probed.outputs[0].as<float>()[i], std::max(operands.inputs()[0].as<float>()[i], 0.0F));
  }
  EXPECT_TRUE(std::isnan(operands.outputs()[0].as<float>()[0]));
}

}  // namespace
}  // namespace xpuruntime
