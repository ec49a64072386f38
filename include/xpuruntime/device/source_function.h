#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/tensor.h"
#include "xpuruntime/device/stream.h"

namespace xpuruntime {

/// A text for a device's own compiler, such as OpenCL C, and the function of it to run.
struct FunctionSource {
  std::string text = {};
  std::string function = {};
  std::string flags = {};  // of the compiler: "-D TILE=16"
};

/// Work-items in each of three dimensions. Zeros behind the first: dimensions that are not there. A local size of
/// zeros: the driver's choice.
using WorkSize = std::array<std::size_t, 3>;

/// With ones for the dimensions that are not there.
constexpr WorkSize filled(WorkSize size) {
  if (size[2] == 0) size[2] = 1;
  if (size[1] == 0 && size[2] == 1) size[1] = 1;
  return size;
}

/// Whether a launch has at most 2^31 work-groups: some drivers count them in 32 bits, and end the process past that.
/// Where the driver chooses the local size, they may be of one item.
bool has_countable_groups(const WorkSize& global, const WorkSize& local);

/// "64", "16x16": without the ones at the end.
std::string to_string(const WorkSize& size);
/// The size with this text; zeros where it is none.
WorkSize parse_work_size(std::string_view text);

/// What a compiled function allows on its device.
struct FunctionLimits {
  std::size_t max_items = 1;          // of one work-group
  WorkSize max_sizes = {1, 1, 1};     // of a work-group, in each dimension
  std::size_t multiple = 1;           // the device runs this many items at once
  WorkSize required = {};             // what the source fixes; zeros: nothing
  std::uint64_t local_bytes = 0;      // of local memory that it uses, without its arguments
  std::uint64_t max_local_bytes = 0;  // that a work-group has
  std::size_t parameters = 0;
};

/// A tensor's memory, a value, or local memory of some bytes: exactly one of them.
struct FunctionArgument {
  enum class Number : std::uint8_t { any, integer, real };

  Tensor tensor = {};
  std::vector<std::byte> value = {};
  Number number = Number::any;  // what the value is
  std::size_t local_bytes = 0;
};

/// One run. Where `local` does not divide `global`, more items run than asked for: whole work-groups.
struct FunctionLaunch {
  std::span<const FunctionArgument> arguments = {};
  WorkSize global = {1, 1, 1};
  WorkSize local = {};
};

/// A function that a device's compiler made. Safe for many threads.
class SourceFunction {
 public:
  virtual ~SourceFunction() = default;
  virtual FunctionLimits limits() const = 0;
  /// Queues a run. Wrong arguments and sizes are an invalid_argument that says which, and nothing runs.
  virtual Status run(const FunctionLaunch& launch, Stream stream) = 0;
  /// Runs and waits. `device_us` is the time of the run alone by the device's clock, negative where it cannot tell.
  virtual Status run_timed(const FunctionLaunch& launch, double& device_us) = 0;
};

/// Of a DeviceDriver whose devices have a compiler; others are not one (dynamic_cast).
class SourceCompiler {
 public:
  virtual ~SourceCompiler() = default;
  /// Compiles, or takes it from a cache. Throws: device_error with the compiler's words, unknown_name where the source
  /// has no such function.
  virtual std::shared_ptr<SourceFunction> compile(int index, const FunctionSource& source) = 0;
};

}  // namespace xpuruntime
