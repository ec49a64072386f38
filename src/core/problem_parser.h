#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// `m=1..512` and where it stands.
struct RangeClause {
  SizeRange range = {};
  std::size_t column = 0;  // from 0
};

/// Of a text whose sizes may be names: the names, and what was written, number or name.
struct NamedSizes {
  std::vector<RangeClause> names = {};
  std::vector<std::int64_t> values = {};  // what the names stand for while the text is read
  std::vector<RangedSpec> inputs = {};
  std::vector<RangedSpec> outputs = {};
};

/// What `none` is read as where sizes may be names: no_input().
inline RangedSpec ranged_none() { return {.dtype = DataType::boolean, .shape = {{0}}}; }

/// " deterministic threads=2", as it ends a problem's text.
std::string limits_text(const Limits& limits);

/// Reads one problem from left to right. Memory grows with the text alone, never by a number that stands in it.
class ProblemParser {
 public:
  /// `function` stands in the errors. With `named`, extents and strides may be its names.
  explicit ProblemParser(std::string_view text, std::string_view function = "parse_problem",
                         NamedSizes* named = nullptr)
      : text_(text), function_(function), named_(named) {}

  Problem problem(Device device);
  /// What follows `where`, from a position on to the end.
  std::vector<RangeClause> ranges(std::size_t position);
  [[noreturn]] void refuse(std::size_t position, ErrorCode code, std::string_view message) const;

 private:
  char peek();
  bool accept(std::string_view token);
  void expect(std::string_view token, std::string_view where);
  std::string_view take(bool (*belongs)(char), std::string_view what);

  template <class Number>
  Number number(std::string_view what);
  RangeClause range();
  int name();
  RangedExtent extent();
  RangedExtent stride();
  std::int64_t value_of(const RangedExtent& extent) const;
  Dims dims(std::string_view close, std::vector<RangedExtent>* written);
  std::uint8_t alignment();
  TensorSpec spec(RangedSpec* written);
  std::vector<TensorSpec> specs(bool parenthesised, std::vector<RangedSpec>* written);
  void attribute(Attributes& attributes, std::vector<std::string_view>& seen);
  Attributes attributes(OpId op);
  Direction direction();
  Device device(Device current);
  Limits limits();

  [[noreturn]] void refuse_here(std::string_view expected);

  /// Calls `use`; an error it throws gets the column of `position`.
  template <class Use>
  auto at(std::size_t position, Use use) const {
    try {
      return use();
    } catch (const Error& error) {
      refuse(position, error.code(), error.message());
    }
  }

  std::string_view text_;
  std::string_view function_;
  NamedSizes* named_;
  std::size_t position_ = 0;
};

}  // namespace xpuruntime
