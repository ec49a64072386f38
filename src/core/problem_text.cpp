#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "core/forward_call.h"
#include "core/problem_parser.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

constexpr std::size_t max_specs = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_value(char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; }

}  // namespace

void ProblemParser::refuse(std::size_t position, ErrorCode code, std::string_view message) const {
  fail(code, function_, "column " + std::to_string(position + 1) + ": " + std::string(message));
}

void ProblemParser::refuse_here(std::string_view expected) {
  const char next = peek();
  const bool printable = next > ' ' && next <= '~';
  std::string found = printable ? "found '" + std::string(1, next) + "'" : "found an unexpected character";
  if (position_ == text_.size()) found = "the text ends";
  refuse(position_, ErrorCode::invalid_argument, found + "; write " + std::string(expected) + " here");
}

// The next character that is no white space; 0 at the end.
char ProblemParser::peek() {
  while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool ProblemParser::accept(std::string_view token) {
  peek();
  if (text_.substr(position_, token.size()) != token) return false;
  position_ += token.size();
  return true;
}

void ProblemParser::expect(std::string_view token, std::string_view where) {
  if (!accept(token)) refuse_here("'" + std::string(token) + "' " + std::string(where));
}

std::string_view ProblemParser::take(bool (*belongs)(char), std::string_view what) {
  peek();
  std::size_t end = position_;
  while (end < text_.size() && belongs(text_[end])) ++end;
  if (end == position_) refuse_here(what);
  const std::string_view taken = text_.substr(position_, end - position_);
  position_ = end;
  return taken;
}

template <class Number>
Number ProblemParser::number(std::string_view what) {
  const std::string_view digits = take(is_digit, what);
  Number value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
    refuse(position_ - digits.size(), ErrorCode::invalid_argument,
           "the number does not fit " + std::to_string(std::numeric_limits<Number>::digits) +
               " bits; write a smaller one");
  }
  return value;
}

RangedExtent ProblemParser::extent() {
  if (named_ == nullptr && is_word(peek()) && !is_digit(peek())) {
    refuse(position_, ErrorCode::invalid_argument,
           "found '" + std::string(1, peek()) +
               "'; write a number of 0 or more, or add the sizes of a name behind the " + "problem: where n=1..512");
  }
  if (named_ == nullptr || is_digit(peek()) || !is_word(peek())) return {number<std::int64_t>("a number of 0 or more")};
  return {1, name()};
}

// An extent, or a multiple of a name: 64n.
RangedExtent ProblemParser::stride() {
  const std::size_t start = (peek(), position_);
  RangedExtent stride = extent();
  if (named_ == nullptr || stride.name >= 0 || position_ >= text_.size() || !is_word(text_[position_])) return stride;
  stride.name = name();
  std::int64_t largest = 0;
  const RangeClause& clause = named_->names[static_cast<std::size_t>(stride.name)];
  if (__builtin_mul_overflow(stride.value, clause.range.high, &largest)) {
    refuse(start, ErrorCode::invalid_argument, "the stride does not fit 63 bits; write a smaller multiple");
  }
  return stride.value == 0 ? RangedExtent{} : stride;
}

std::int64_t ProblemParser::value_of(const RangedExtent& extent) const {
  return extent.name < 0 ? extent.value : extent.value * named_->values[static_cast<std::size_t>(extent.name)];
}

int ProblemParser::name() {
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "a number or a name");
  for (std::size_t i = 0; i < named_->names.size(); ++i) {
    if (named_->names[i].range.name == name) return static_cast<int>(i);
  }
  const std::string shown(name.substr(0, 64));
  const char* before = named_->names.empty() ? "where " : ", ";
  refuse(start, ErrorCode::invalid_argument,
         shown + " is not defined; add its range at the end, like '" + before + shown + "=1..512'");
}

// What follows '[' or '{', up to and with the closing bracket.
Dims ProblemParser::dims(std::string_view close, std::vector<RangedExtent>* written) {
  std::int64_t values[max_rank] = {};
  std::size_t size = 0;
  if (accept(close)) return {};
  do {
    peek();
    if (size == max_rank) refuse(position_, ErrorCode::invalid_argument, "more than 8 dims; merge some of them");
    const RangedExtent given = close == "}" ? stride() : extent();
    values[size++] = value_of(given);
    if (written != nullptr) written->push_back(given);
  } while (accept(","));
  expect(close, "or ','");
  return Dims(std::span<const std::int64_t>(values, size));
}

std::uint8_t ProblemParser::alignment() {
  peek();
  const std::size_t start = position_;
  const auto bytes = number<std::uint64_t>("an alignment of 1, 2, 4, 8 or 16");
  if (bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) != 0) {
    refuse(start, ErrorCode::invalid_argument, "no such alignment; write 1, 2, 4, 8 or 16");
  }
  return static_cast<std::uint8_t>(bytes);
}

TensorSpec ProblemParser::spec(RangedSpec* written) {
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "a tensor like f32[2,3]");
  if (name == "none") {
    if (written != nullptr) *written = ranged_none();
    return no_input();
  }
  const DataType dtype = at(start, [&] { return parse_data_type(name); });
  expect("[", "and the extents");
  const Dims shape = dims("]", written == nullptr ? nullptr : &written->shape);
  TensorSpec spec = at(start, [&] { return make_spec(dtype, shape); });
  const Dims strides = accept("{") ? dims("}", written == nullptr ? nullptr : &written->strides) : spec.strides;
  const std::uint8_t bytes = accept("/") ? alignment() : spec.alignment;
  if (written != nullptr) written->dtype = dtype, written->alignment = bytes;
  return at(start, [&] { return make_spec(dtype, shape, strides, bytes); });
}

std::vector<TensorSpec> ProblemParser::specs(bool parenthesised, std::vector<RangedSpec>* written) {
  std::vector<TensorSpec> list;
  if (parenthesised && (peek() == ')' || peek() == ';')) return list;
  do {
    peek();
    if (list.size() == max_specs) refuse(position_, ErrorCode::invalid_argument, "more than 64 tensors; write fewer");
    list.push_back(spec(written == nullptr ? nullptr : &written->emplace_back()));
  } while (accept(","));
  return list;
}

void ProblemParser::attribute(Attributes& attributes, std::vector<std::string_view>& seen) {
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

Attributes ProblemParser::attributes(OpId op) {
  Attributes attributes(op);
  std::vector<std::string_view> seen;  // no longer than the op's attributes: others and repeats are refused
  if (accept(";")) {
    while (peek() != ')') attribute(attributes, seen);
  }
  expect(")", "or ';' and attributes like stride=1,1");
  return attributes;
}

Direction ProblemParser::direction() {
  if (!accept(":")) return Direction::forward;
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "forward or backward");
  if (name == "backward") return Direction::backward;
  if (name == "forward") return Direction::forward;
  refuse(start, ErrorCode::invalid_argument, "no such direction; write forward or backward");
}

Device ProblemParser::device(Device current) {
  if (!accept("@")) return current;
  peek();
  const std::size_t start = position_;
  const auto belongs = [](char c) { return is_word(c) || c == ':'; };
  const std::string_view name = take(belongs, "a device like cuda:0");
  return at(start, [&] { return parse_device(name); });
}

Limits ProblemParser::limits() {
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

Problem ProblemParser::problem(Device current) {
  peek();
  const std::size_t start = position_;
  const std::string_view name = take(is_word, "an op like matmul");
  const OpId op = at(start, [&] { return parse_op(name); });
  const Direction which = direction();
  expect("(", "and the inputs");
  std::vector<TensorSpec> inputs = specs(true, named_ == nullptr ? nullptr : &named_->inputs);
  const Attributes given = attributes(op);
  Problem problem = at(start, [&] { return make_problem(op, std::move(inputs), given, {}, which); });
  peek();
  const std::size_t arrow = position_;
  if (accept("->")) {
    std::vector<TensorSpec> outputs = specs(false, named_ == nullptr ? nullptr : &named_->outputs);
    at(arrow, [&] { set_outputs(problem, std::move(outputs)); });
  }
  problem.device = device(current);
  problem.limits = limits();
  peek();
  if (position_ < text_.size()) refuse_here("nothing more, or '->' before '@' before limits,");
  return problem;
}

namespace {

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

std::string limits_text(const Limits& limits) {
  std::string text;
  if (limits.deterministic) text += " deterministic";
  if (limits.threads) text += " threads=" + std::to_string(*limits.threads);
  if (limits.workspace_bytes) text += " workspace_limit=" + std::to_string(*limits.workspace_bytes);
  return text;
}

std::string to_string(const Problem& problem) {
  std::string text(to_string(problem.op));
  if (problem.direction == Direction::backward) text += ":backward";
  text += list_text(op_info(problem.op), problem.inputs);
  text.pop_back();
  const std::string attributes = problem.attributes.to_string();
  if (!attributes.empty()) text += "; " + attributes;
  text += ")";
  if (!problem.outputs.empty() && !outputs_are_inferred(problem)) {
    const std::string outputs = list_text(problem.outputs);
    text += " -> " + outputs.substr(1, outputs.size() - 2);
  }
  return text + " @" + to_string(problem.device) + limits_text(problem.limits);
}

RangeClause ProblemParser::range() {
  peek();
  RangeClause clause;
  clause.column = position_;
  const std::string_view name = take(is_word, "a name and its range, like m=1..512");
  if (is_digit(name.front())) refuse(clause.column, ErrorCode::invalid_argument, "a name starts with a letter");
  clause.range.name = name;
  expect("=", "and a range, like " + std::string(name.substr(0, 64)) + "=1..512");
  peek();
  const std::size_t start = position_;
  clause.range.low = number<std::int64_t>("the least size");
  expect("..", "and the largest size");
  clause.range.high = number<std::int64_t>("the largest size");
  if (clause.range.low > clause.range.high) {
    refuse(start, ErrorCode::invalid_argument,
           "the range runs backwards; write " + std::to_string(clause.range.high) + ".." +
               std::to_string(clause.range.low));
  }
  return clause;
}

std::vector<RangeClause> ProblemParser::ranges(std::size_t position) {
  constexpr std::size_t most_names = 4;
  position_ = position;
  std::vector<RangeClause> clauses;
  do {
    const RangeClause clause = range();
    for (const RangeClause& earlier : clauses) {
      if (earlier.range.name != clause.range.name) continue;
      refuse(clause.column, ErrorCode::invalid_argument, clause.range.name + " is given twice; write it once");
    }
    if (clauses.size() == most_names)
      refuse(clause.column, ErrorCode::invalid_argument, "more than 4 names; use fewer");
    clauses.push_back(clause);
  } while (accept(","));
  if (peek() != '\0' || position_ < text_.size()) refuse_here("nothing more, or ',' and another range,");
  return clauses;
}

Problem parse_problem(std::string_view text, Device device) {
  const ProblemParser whole(text);
  try {
    return ProblemParser(text).problem(device);
  } catch (const Error& error) {
    if (!has_ranges(text)) throw;
    whole.refuse(
        text.rfind("where"), error.code(),
        "this has ranges of sizes, and one problem is expected; write its sizes as numbers, or give the text to "
        "tune, lock record (record_lock in Python) or report");
  }
}

}  // namespace xpuruntime
