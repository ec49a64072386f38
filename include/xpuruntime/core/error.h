#pragma once

#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace xpuruntime {

/// What kind of thing went wrong. Python maps each code to an exception type.
enum class ErrorCode {
  invalid_argument,  // the caller passed something that cannot be right
  unknown_name,      // no such op, dtype, device or kernel; the text lists the near ones
  not_supported,     // a right request that nothing here can serve; the text says why
  device_error,      // a driver or a launch failed
  device_lost,       // the device takes no more work in this process; later failures on it mean nothing
  out_of_memory,
  io_error,      // a file could not be read or written
  corrupt_data,  // a file was read but is not what it claims to be
  timeout,
  internal,  // a bug in this library
};

std::string_view to_string(ErrorCode code);

/// The one exception type. The text starts with `[function]` and ends with what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view function, std::string_view message);
  ErrorCode code() const { return code_; }
  /// The two parts of the text: the function that failed, and what it says. They live as long as the error.
  std::string_view function() const { return {what() + 1, function_size_}; }
  std::string_view message() const { return what() + function_size_ + 3; }

 private:
  ErrorCode code_;
  std::size_t function_size_;
};

[[noreturn]] void fail(ErrorCode code, std::string_view function, std::string_view message);

/// The text of an exception of any type. The exception is looked up by the caller: a library with a C++ runtime of its
/// own does not know it.
std::string exception_text(const std::exception_ptr& thrown = std::current_exception());

/// The outcome of a launch: data, not an exception, and one null pointer when all is well.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message);

  bool ok() const { return detail_ == nullptr; }
  ErrorCode code() const;
  const std::string& message() const;

 private:
  struct Detail;
  std::shared_ptr<const Detail> detail_;
};

/// The names in `known` that a person who wrote `name` may have meant, nearest first, at most three.
std::vector<std::string> near_names(std::string_view name, std::span<const std::string_view> known);

/// Fails with `unknown_name`: "unknown op 'matmull'; did you mean matmul? ..." in the words every such error uses.
[[noreturn]] void fail_unknown(std::string_view function, std::string_view what, std::string_view name,
                               std::span<const std::string_view> known);

}  // namespace xpuruntime
