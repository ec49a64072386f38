#pragma once

#include <map>
#include <string>
#include <string_view>

#include "backends/opencl/cl_api.h"
#include "xpuruntime/device/source_function.h"

namespace xpuruntime::opencl {

/// A program for one device: the text of `common`, which readers of an error do not count, then that of `source`.
struct BuildRequest {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  std::string_view common = {};
  std::string_view source = {};
  std::string options = {};
  bool always_binary = false;  // also where the driver keeps its own; for tests
};

/// Compiled in another process, which may crash or hang, and kept on disk: the next process compiles nothing. For
/// drivers with a cache of their own only the fact that it compiles is kept, and the driver finds the rest: reading its
/// binaries takes longer. Throws device_error, with the source's line where it has an error.
Program build_program(const BuildRequest& request);

/// Launches of a kernel that share the machine code that PoCL makes.
struct CodeVariant {
  WorkSize size = {};     // of a work-group; where PoCL chooses that, of the grid
  bool is_chosen = true;  // the size of a work-group is given
  bool is_large = false;  // a grid with 65535 items or more along an extent

  auto operator<=>(const CodeVariant&) const = default;
};
CodeVariant variant_of(const WorkSize& global, const WorkSize& local);

/// For PoCL, which makes machine code of a kernel only where a launch starts, with no time limit, and ends the process
/// where it cannot. This has it made in the other process before, as `build_program` does, unless its file is known to
/// be there. Throws device_error, or out_of_memory where another try may do.
void make_machine_code(const BuildRequest& request, const std::string& function, const CodeVariant& variant);

/// To be said where a program that compiles is not whole: PoCL does not check its own cache. Empty for other drivers.
std::string advice_on_damage(cl_device_id device);

/// Variables for the process that compiles, so that it sees the platforms that this one sees. Before the first build.
void set_compiler_environment(std::map<std::string, std::string> environment);

/// How many builds this process has had compiled, and how many it took from the disk.
struct BuildCounts {
  std::uint64_t compiled = 0;
  std::uint64_t loaded = 0;
};
BuildCounts build_counts();

}  // namespace xpuruntime::opencl
