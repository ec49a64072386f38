#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tune/operands.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// What came of a kernel's first run in a process of its own.
struct ProbeResult {
  std::string failure = {};  // "it crashed with signal 11 (SIGSEGV)"; empty: it came to an end
  Status status = {};        // what it returned or threw (contained)
  bool killed = false;       // by somebody else: says nothing about the kernel
  bool cancelled = false;
  std::vector<Tensor> outputs = {};  // what it wrote, where it ran
};

struct ProbeSettings {
  std::string token = {};  // of the plan to prepare; empty: the kernel's own choice
  double timeout_s = 10;
  std::optional<std::uint64_t> inputs_hash = {};  // where it differs afterwards, the kernel wrote to its inputs
  std::function<bool()> keep_going = {};          // asked while waiting; false ends the child
};

/// Prepares the kernel and runs it once in a child process, on CPU tensors: the
/// inputs of `operands` and new outputs. Nothing the kernel does there (a
/// crash, exit(), an endless loop) reaches this process, and no child is left
/// behind. What the child prints is lost. A kernel that waits for another
/// thread of this process hangs there: a forked process has one thread.
ProbeResult probe_in_child(const Kernel& kernel, const Problem& problem, const PrepareContext& context,
                           const Operands& operands, void* workspace, const ProbeSettings& settings);

/// In such a child: leaves a text for the parent, at most `longest_note` bytes of it; a later one replaces it. False in
/// any other process.
bool leave_note(std::string_view note);
constexpr std::size_t longest_note = 8000;

/// Gets the note of a child that is gone, on the thread that tried the kernel. There is one reader in a process.
void set_note_reader(void (*reader)(std::string_view note));

/// True while this thread forks such a child: handlers of pthread_atfork may want to know.
bool forking_to_probe();

}  // namespace xpuruntime
