#include "xpuruntime/core/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/names.h"
#include "core/printable.h"

namespace xpuruntime {
namespace {

std::string with_function(std::string_view function, std::string_view message) {
  return "[" + std::string(function) + "] " + printable_lines(message);
}

// Levenshtein distance without regard to case; one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (lowered(a[i]) == lowered(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string join(std::span<const std::string_view> names, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += (i ? ", " : "") + std::string(names[i]);
  return names.size() > most ? out + ", ..." : out;
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unknown_name:
      return "unknown_name";
    case ErrorCode::not_supported:
      return "not_supported";
    case ErrorCode::device_error:
      return "device_error";
    case ErrorCode::device_lost:
      return "device_lost";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::io_error:
      return "io_error";
    case ErrorCode::corrupt_data:
      return "corrupt_data";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string_view function, std::string_view message)
    : std::runtime_error(with_function(function, message)), code_(code), function_size_(function.size()) {}

void fail(ErrorCode code, std::string_view function, std::string_view message) { throw Error(code, function, message); }

std::string exception_text(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return *error.what() != '\0' ? error.what() : "an exception without a text";
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

struct Status::Detail {
  ErrorCode code;
  std::string message;
};

Status::Status(ErrorCode code, std::string message)
    : detail_(std::make_shared<const Detail>(Detail{code, std::move(message)})) {}

ErrorCode Status::code() const { return detail_ ? detail_->code : ErrorCode::internal; }

const std::string& Status::message() const {
  static const std::string& empty = *new std::string;  // no destructor to register, which forked children may wait for
  return detail_ ? detail_->message : empty;
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string_view> known) {
  // A name as long as a sentence is no misspelling, and comparing it would cost its length squared.
  if (name.empty() || name.size() > 64) return {};
  std::vector<std::pair<std::size_t, std::string_view>> scored;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3)) {
      scored.emplace_back(distance, candidate);
    }
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : scored) {
    if (out.size() < 3 && std::find(out.begin(), out.end(), candidate) == out.end()) out.emplace_back(candidate);
  }
  return out;
}

void fail_unknown(std::string_view function, std::string_view what, std::string_view name,
                  std::span<const std::string_view> known) {
  std::string message = "unknown " + std::string(what) + " '" + printable(name.substr(0, 64)) + "'";
  const std::vector<std::string> near = near_names(name, known);
  if (!near.empty()) {
    message += "; did you mean ";
    for (std::size_t i = 0; i < near.size(); ++i) message += (i ? " or " : "") + near[i];
    message += "?";
  } else {
    message += "; use one of: " + join(known, 16);
  }
  fail(ErrorCode::unknown_name, function, message);
}

}  // namespace xpuruntime
