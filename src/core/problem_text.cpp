#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "core/infer.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

constexpr std::size_t max_specs = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_value(char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; }

// What an error says, without the function that said it.
std::string_view message_of(const Error& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

/// Reads one problem from left to right. Memory grows with the text alone, never by a number that stands in it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Problem problem(Device device);

 private:
  char peek();
  bool accept(std::string_view token);
  void expect(std::string_view token, std::string_view where);
  std::string_view take(bool (*belongs)(char), std::string_view what);

  template <class Number>
  Number number(std::string_view what);
  Dims dims(std::string_view close);
  std::uint8_t alignment();
  TensorSpec spec();
  std::vector<TensorSpec> specs(bool parenthesised);
  void attribute(Attributes& attributes, std::vector<std::string_view>& seen);
  Attributes attributes(OpId op);
  Direction direction();
  Device device(Device current);
  Limits limits();

  [[noreturn]] void refuse(std::size_t position, ErrorCode code, std::string_view message) const;
  [[noreturn]] void refuse_here(std::string_view expected);

  /// Calls `use`; an error it throws gets the column of `position`.
  template <class Use>
  auto at(std::size_t position, Use use) const {
    try {
      return use();
    } catch (const Error& error) {
      refuse(position, error.code(), message_of(error));
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

void Parser::refuse(std::size_t position, ErrorCode code, std::string_view message) const {
  fail(code, "parse_problem", "column " + std::to_string(position + 1) + ": " + std::string(message));
}

void Parser::refuse_here(std::string_view expected) {
  const char next = peek();
  const bool printable = next > ' ' && next <= '~';
  std::string found = printable ? "found '" + std::string(1, next) + "'" : "found an odd character";
  if (position_ == text_.size()) found = "the text ends";
  refuse(position_, ErrorCode::invalid_argument, found + "; write " + std::string(expected) + " here");
}

// The next character that is no white space; 0 at the end.
char Parser::peek() {
  while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool Parser::accept(std::string_view token) {
  peek();
  if (text_.substr(position_, token.size()) != token) return false;
  position_ += token.size();
  return true;
}

void Parser::expect(std::string_view token, std::string_view where) {
  if (!accept(token)) refuse_here("'" + std::string(token) + "' " + std::string(where));
}

std::string_view Parser::take(bool (*belongs)(char), std::string_view what) {
  peek();
  std::size_t end = position_;
  while (end < text_.size() && belongs(text_[end])) ++end;
  if (end == position_) refuse_here(what);
  const std::string_view taken = text_.substr(position_, end - position_);
  position_ = end;
  return taken;
}

template <class Number>
Number Parser::number(std::string_view what) {
  const std::string_view digits = take(is_digit, what);
  Number value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
    refuse(position_ - digits.size(), ErrorCode::invalid_argument,
           "the number does not fit " + std::to_string(std::numeric_limits<Number>::digits) +
               " bits; write a smaller one");
  }
  return value;
}

// What follows '[' or '{', up to and with the closing bracket.
Dims Parser::dims(std::string_view close) {
  std::int64_t values[max_rank] = {};
  std::size_t size = 0;
  if (accept(close)) return {};
  do {
    peek();
    if (size == max_rank) refuse(position_, ErrorCode::invalid_argument, "more than 8 dims; merge some of them");
    values[size++] = number<std::int64_t>("a number of 0 or more");
  } while (accept(","));
  expect(close, "or ','");
  return Dims(std::span<const std::int64_t>(values, size));
}

std::uint8_t Parser::alignment() {
  peek();
  const std::size_t start = position_;
  const auto bytes = number<std::uint64_t>("an alignment of 1, 2, 4, 8 or 16");
  if (bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) != 0) {
    refuse(start, ErrorCode::invalid_argument, "no such alignment; write 1, 2, 4, 8 or 16");
  }
  return static_cast<std::uint8_t>(bytes);
}

TensorSpec Parser::spec() {
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "a tensor like f32[2,3]");
  const DataType dtype = at(start, [&] { return parse_data_type(name); });
  expect("[", "and the extents");
  const Dims shape = dims("]");
  TensorSpec spec = at(start, [&] { return make_spec(dtype, shape); });
  const Dims strides = accept("{") ? dims("}") : spec.strides;
  const std::uint8_t bytes = accept("/") ? alignment() : spec.alignment;
  return at(start, [&] { return make_spec(dtype, shape, strides, bytes); });
}

std::vector<TensorSpec> Parser::specs(bool parenthesised) {
  std::vector<TensorSpec> list;
  if (parenthesised && (peek() == ')' || peek() == ';')) return list;
  do {
    peek();
    if (list.size() == max_specs) refuse(position_, ErrorCode::invalid_argument, "more than 64 tensors; write fewer");
    list.push_back(spec());
  } while (accept(","));
  return list;
}

void Parser::attribute(Attributes& attributes, std::vector<std::string_view>& seen) {
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "an attribute name or ')'");
  expect("=", "and a value");
  std::string value;
  do {
    value += (value.empty() ? "" : ",") + std::string(take(is_value, "a value"));
  } while (accept(","));
  at(start, [&] { attributes.parse(name, value); });
  for (const std::string_view earlier : seen) {
    if (earlier == name) {
      refuse(start, ErrorCode::invalid_argument, std::string(name) + " is given twice; write it once");
    }
  }
  seen.push_back(name);
}

Attributes Parser::attributes(OpId op) {
  Attributes attributes(op);
  std::vector<std::string_view> seen;  // no longer than the op's attributes: others and repeats are refused
  if (accept(";")) {
    while (peek() != ')') attribute(attributes, seen);
  }
  expect(")", "or ';' and attributes like stride=1,1");
  return attributes;
}

Direction Parser::direction() {
  if (!accept(":")) return Direction::forward;
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "forward or backward");
  if (name == "backward") return Direction::backward;
  if (name == "forward") return Direction::forward;
  refuse(start, ErrorCode::invalid_argument, "no such direction; write forward or backward");
}

Device Parser::device(Device current) {
  if (!accept("@")) return current;
  peek();
  const std::size_t start = position_;
  const auto belongs = [](char c) { return is_word(c) || c == ':'; };
  const std::string_view name = take(belongs, "a device like cuda:0");
  return at(start, [&] { return parse_device(name); });
}

Limits Parser::limits() {
  Limits limits;
  while (peek() != '\0' && is_word(peek())) {
    const std::size_t start = position_;
    const std::string_view name = take(is_word, "deterministic, threads=N or workspace_limit=BYTES");
    if (name == "deterministic" && !limits.deterministic) {
      limits.deterministic = true;
    } else if (name == "workspace_limit" && !limits.workspace_bytes) {
      expect("=", "and a number of bytes");
      limits.workspace_bytes = number<std::uint64_t>("a number of bytes");
    } else if (name == "threads" && !limits.threads) {
      expect("=", "and a number of threads");
      limits.threads = number<std::uint32_t>("a number of threads");
      if (*limits.threads == 0) refuse(start, ErrorCode::invalid_argument, "0 threads do no work; write 1 or more");
    } else {
      refuse(start, ErrorCode::invalid_argument,
             "found '" + std::string(name.substr(0, 64)) +
                 "'; write deterministic, threads=N or workspace_limit=BYTES, each once");
    }
  }
  return limits;
}

Problem Parser::problem(Device current) {
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "an op like matmul");
  const OpId op = at(start, [&] { return parse_op(name); });
  const Direction which = direction();
  expect("(", "and the inputs");
  std::vector<TensorSpec> inputs = specs(true);
  const Attributes given = attributes(op);
  Problem problem = at(start, [&] { return make_problem(op, std::move(inputs), given, {}, which); });
  peek();
  const std::size_t arrow = position_;
  if (accept("->")) {
    std::vector<TensorSpec> outputs = specs(false);
    at(arrow, [&] { set_outputs(problem, std::move(outputs)); });
  }
  problem.device = device(current);
  problem.limits = limits();
  peek();
  if (position_ < text_.size()) refuse_here("nothing more, or '->' before '@' before limits,");
  return problem;
}

std::string joined(std::span<const TensorSpec> specs) {
  const std::string text = list_text(specs);
  return text.substr(1, text.size() - 2);
}

// A problem that was put together by hand may not be one that can be inferred; it is shown all the same.
bool outputs_are_inferred(const Problem& problem) {
  try {
    return problem.outputs ==
           make_problem(problem.op, problem.inputs, problem.attributes, problem.device, problem.direction).outputs;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string to_string(const TensorSpec& spec) {
  std::string text = std::string(to_string(spec.dtype)) + to_string(spec.shape);
  if (!spec.contiguous) {
    const std::string strides = to_string(spec.strides);
    text += "{" + strides.substr(1, strides.size() - 2) + "}";
  }
  if (spec.alignment < 16) text += "/" + std::to_string(spec.alignment);
  return text;
}

std::string to_string(const Problem& problem) {
  std::string text(to_string(problem.op));
  if (problem.direction == Direction::backward) text += ":backward";
  text += "(" + joined(problem.inputs);
  const std::string attributes = problem.attributes.to_string();
  if (!attributes.empty()) text += "; " + attributes;
  text += ")";
  if (!problem.outputs.empty() && !outputs_are_inferred(problem)) text += " -> " + joined(problem.outputs);
  text += " @" + to_string(problem.device);
  if (problem.limits.deterministic) text += " deterministic";
  if (problem.limits.threads) text += " threads=" + std::to_string(*problem.limits.threads);
  if (problem.limits.workspace_bytes) text += " workspace_limit=" + std::to_string(*problem.limits.workspace_bytes);
  return text;
}

Problem parse_problem(std::string_view text, Device device) { return Parser(text).problem(device); }

}  // namespace xpuruntime
