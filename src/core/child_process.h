#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace xpuruntime {

/// The settings of one posix_spawn: the child's standard files, no signal blocked or ignored, and a process group of
/// its own, so that what it starts can be killed with it.
class SpawnSettings {
 public:
  SpawnSettings(int input, int output) {
    posix_spawn_file_actions_init(&actions);
    pass(input, STDIN_FILENO);
    pass(output, STDOUT_FILENO);
    pass(output, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// The child has a file of ours under this number.
  void pass(int file, int number) { posix_spawn_file_actions_adddup2(&actions, file, number); }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// What waitpid says of a process, for messages.
inline std::string ending_of(int status) {
  if (WIFSIGNALED(status)) return "crashed with signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace xpuruntime
