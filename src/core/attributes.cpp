#include <bit>
#include <charconv>
#include <cmath>

#include "core/op_table.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view function = "Attributes";

struct Place {
  const AttributeSpec* spec = nullptr;
  std::size_t word = 0;
};

[[noreturn]] void fail_no_such(const OpInfo& info, std::string_view name) {
  const std::string op(info.name);
  if (info.attributes.empty()) {
    fail(ErrorCode::unknown_name, function,
         op + " has no attributes; leave out '" + std::string(name.substr(0, 64)) + "'");
  }
  std::vector<std::string_view> known;
  for (const AttributeSpec& spec : info.attributes) known.push_back(spec.name);
  fail_unknown(function, "attribute of " + op, name, known);
}

Place find_place(OpId op, std::string_view name) {
  const OpInfo& info = op_info(op);
  std::size_t word = 0;
  for (const AttributeSpec& spec : info.attributes) {
    if (spec.name == name) return {&spec, word};
    word += word_count(spec);
  }
  fail_no_such(info, name);
}

std::string_view kind_text(AttributeKind kind) {
  constexpr std::string_view names[] = {"a boolean",          "an integer",    "a real number",
                                        "a list of integers", "a choice name", "a dtype"};
  return names[static_cast<std::size_t>(kind)];
}

[[noreturn]] void fail_value(const AttributeSpec& spec, std::string_view value) {
  fail(ErrorCode::invalid_argument, function,
       std::string(spec.name) + "=" + std::string(value.substr(0, 64)) + " does not fit; give " +
           std::string(kind_text(spec.kind)));
}

template <class Number>
Number parse_number(const AttributeSpec& spec, std::string_view text) {
  Number number = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) fail_value(spec, text);
  return number;
}

bool parse_boolean(const AttributeSpec& spec, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  fail(ErrorCode::invalid_argument, function,
       std::string(spec.name) + "=" + std::string(text.substr(0, 64)) + " does not fit; give true or false");
}

// Stops past the longest list there can be, so a long text costs no memory.
std::vector<std::int64_t> parse_list(const AttributeSpec& spec, std::string_view text) {
  std::vector<std::int64_t> values;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    values.push_back(parse_number<std::int64_t>(spec, text.substr(0, comma)));
    if (comma == std::string_view::npos || values.size() > Attributes::max_words) break;
    text = text.substr(comma + 1);
    if (text.empty()) fail_value(spec, text);
  }
  return values;
}

std::string real_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string_view choice_at(std::string_view choices, std::int64_t index) {
  std::string_view found;
  for_each_part(choices, [&](std::string_view part) {
    found = part;
    return index-- > 0;
  });
  return found;
}

std::string list_text(std::span<const std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

std::string value_text(const AttributeSpec& spec, std::span<const std::int64_t> words) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return words[0] != 0 ? "true" : "false";
    case AttributeKind::integer:
      return std::to_string(words[0]);
    case AttributeKind::real:
      return real_text(std::bit_cast<double>(words[0]));
    case AttributeKind::integers:
      return list_text(spec.length == 0 ? words.subspan(1, static_cast<std::size_t>(words[0])) : words);
    case AttributeKind::choice:
      return std::string(choice_at(spec.choices, words[0]));
    case AttributeKind::dtype:
      return std::string(to_string(static_cast<DataType>(words[0])));
  }
  return {};
}

// What `set` and `integer` treat alike: kinds whose value is one whole number.
bool fits_kind(AttributeKind actual, AttributeKind wanted) {
  if (actual == wanted) return true;
  return wanted == AttributeKind::integer && (actual == AttributeKind::boolean || actual == AttributeKind::dtype);
}

}  // namespace

Attributes::Attributes(OpId op) : op_(op) {
  for (const AttributeSpec& spec : op_info(op).attributes) {
    const bool free_length = spec.kind == AttributeKind::integers && spec.length == 0;
    for (std::size_t i = 0; i < word_count(spec); ++i) words_[count_++] = free_length ? 0 : spec.default_value;
  }
}

std::size_t Attributes::locate(std::string_view name, AttributeKind kind, const AttributeSpec** spec) const {
  const Place place = find_place(op_, name);
  // Attributes that were made without an op have no words to give.
  if (place.word + word_count(*place.spec) > count_) {
    fail(ErrorCode::invalid_argument, function,
         "'" + std::string(name) + "' of empty attributes; make them with Attributes(op)");
  }
  if (!fits_kind(place.spec->kind, kind)) {
    fail(ErrorCode::invalid_argument, function,
         std::string(name) + " is not " + std::string(kind_text(kind)) + "; use it as " +
             std::string(kind_text(place.spec->kind)));
  }
  *spec = place.spec;
  return place.word;
}

Attributes& Attributes::set(std::string_view name, std::int64_t value) {
  const AttributeSpec* spec = find_place(op_, name).spec;
  if (spec->kind == AttributeKind::integers) return set_list(name, {&value, 1});
  if (spec->kind == AttributeKind::real) return set_real(name, static_cast<double>(value));
  const std::size_t word = locate(name, AttributeKind::integer, &spec);
  const bool bad_boolean = spec->kind == AttributeKind::boolean && value != 0 && value != 1;
  const bool bad_dtype = spec->kind == AttributeKind::dtype && (value < 0 || value >= data_type_count);
  if (bad_boolean || bad_dtype) fail_value(*spec, std::to_string(value));
  words_[word] = value;
  return *this;
}

Attributes& Attributes::set_real(std::string_view name, double value) {
  const AttributeSpec* spec = nullptr;
  const std::size_t word = locate(name, AttributeKind::real, &spec);
  if (!std::isfinite(value)) {
    fail(ErrorCode::invalid_argument, function, std::string(name) + " is not finite; give a finite number");
  }
  words_[word] = std::bit_cast<std::int64_t>(value);
  return *this;
}

Attributes& Attributes::set_list(std::string_view name, std::span<const std::int64_t> values) {
  const AttributeSpec* spec = nullptr;
  std::size_t word = locate(name, AttributeKind::integers, &spec);
  const bool free_length = spec->length == 0;
  const bool fits = free_length ? values.size() <= max_rank : values.size() == spec->length || values.size() == 1;
  if (!fits) {
    fail(ErrorCode::invalid_argument, function,
         std::string(name) + " has " + std::to_string(values.size()) + " values; give " +
             (free_length ? "at most 8" : "1 or " + std::to_string(spec->length)));
  }
  if (free_length) words_[word++] = static_cast<std::int64_t>(values.size());
  // Unused words are zeroed: equal lists must be equal words.
  for (std::size_t i = 0; i < (free_length ? max_rank : spec->length); ++i) {
    words_[word + i] = values.size() == 1 && !free_length ? values[0] : i < values.size() ? values[i] : 0;
  }
  return *this;
}

Attributes& Attributes::set_choice(std::string_view name, std::string_view value) {
  const AttributeSpec* spec = nullptr;
  const std::size_t word = locate(name, AttributeKind::choice, &spec);
  std::vector<std::string_view> known;
  for_each_part(spec->choices, [&](std::string_view part) {
    known.push_back(part);
    return part != value;
  });
  if (known.back() != value) fail_unknown(function, name, value, known);
  words_[word] = static_cast<std::int64_t>(known.size()) - 1;
  return *this;
}

Attributes& Attributes::parse(std::string_view name, std::string_view value) {
  const AttributeSpec& spec = *find_place(op_, name).spec;
  switch (spec.kind) {
    case AttributeKind::boolean:
      return set(name, parse_boolean(spec, value));
    case AttributeKind::integer:
      return set(name, parse_number<std::int64_t>(spec, value));
    case AttributeKind::real:
      return set_real(name, parse_number<double>(spec, value));
    case AttributeKind::integers:
      return set_list(name, parse_list(spec, value));
    case AttributeKind::choice:
      return set_choice(name, value);
    case AttributeKind::dtype:
      return set(name, static_cast<std::int64_t>(parse_data_type(value)));
  }
  return *this;
}

std::int64_t Attributes::integer(std::string_view name) const {
  const AttributeSpec* spec = nullptr;
  return words_[locate(name, AttributeKind::integer, &spec)];
}

double Attributes::real(std::string_view name) const {
  const AttributeSpec* spec = nullptr;
  return std::bit_cast<double>(words_[locate(name, AttributeKind::real, &spec)]);
}

std::vector<std::int64_t> Attributes::list(std::string_view name) const {
  const AttributeSpec* spec = nullptr;
  const std::int64_t* words = &words_[locate(name, AttributeKind::integers, &spec)];
  return spec->length == 0 ? std::vector(words + 1, words + 1 + words[0]) : std::vector(words, words + spec->length);
}

std::string_view Attributes::choice(std::string_view name) const {
  const AttributeSpec* spec = nullptr;
  const std::size_t word = locate(name, AttributeKind::choice, &spec);
  return choice_at(spec->choices, words_[word]);
}

DataType Attributes::data_type(std::string_view name) const {
  const AttributeSpec* spec = nullptr;
  return static_cast<DataType>(words_[locate(name, AttributeKind::dtype, &spec)]);
}

bool Attributes::is_default(std::string_view name) const {
  const Place place = find_place(op_, name);
  return place.word >= count_ || holds_default(*place.spec, words().subspan(place.word, word_count(*place.spec)));
}

std::string Attributes::to_string() const {
  std::string text;
  std::size_t word = 0;
  for (const AttributeSpec& spec : op_info(op_).attributes) {
    const std::size_t size = word_count(spec);
    if (word + size > count_) break;
    const auto words = this->words().subspan(word, size);
    word += size;
    if (holds_default(spec, words)) continue;
    text += (text.empty() ? "" : " ") + std::string(spec.name) + "=" + value_text(spec, words);
  }
  return text;
}

}  // namespace xpuruntime
