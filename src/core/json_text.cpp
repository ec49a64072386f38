#include "core/json_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/json_scan.h"

namespace xpuruntime {
namespace {

std::string to_text(const JsonPlace& place) {
  return "line " + std::to_string(place.line) + ", column " + std::to_string(place.column);
}

/// "line 3, column 7" of the byte that the parser stopped at (it counts from 1).
std::string stop_of(std::string_view text, std::size_t byte) {
  return to_text(place_of_byte(text, byte > 0 ? byte - 1 : 0));
}

/// What the parser said, without its own prefix.
std::string cause_of(const std::exception& error) {
  std::string_view text = error.what();
  if (const auto start = text.find(": "); start != text.npos) text.remove_prefix(start + 2);
  return shown(text);
}

[[noreturn]] void refuse_depth(std::string_view text, const JsonSource& source) {
  std::string place;
  scan_json(text, [&](const JsonField& field) {
    if (field.depth <= static_cast<std::size_t>(source.max_depth)) return Scanning::inside;
    place = to_text(place_of_byte(text, field.byte)) + ": ";
    return Scanning::stop;
  });
  source.refuse(ErrorCode::corrupt_data,
                place + "nested deeper than a " + std::string(source.kind) + " can be; compare it with the manual");
}

[[noreturn]] void refuse_repeated(std::string_view text, const JsonSource& source) {
  std::string message = "duplicate key; remove one";
  scan_json(text, [&](const JsonField& field) {
    if (!field.repeated) return Scanning::inside;
    message =
        to_text(place_of_byte(text, field.byte)) + ": field '" + shown(field.path) + "' is a duplicate; remove one";
    return Scanning::stop;
  });
  source.refuse(ErrorCode::invalid_argument, message);
}

// A value takes several times the memory of its text: a file of a few hundred megabytes must not take all there is.
constexpr std::size_t most_values = 20'000'000;

/// Builds the document out of what the parser comes by. The parser's own way looks for each name among all before it,
/// and keeps the last of duplicates.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  JsonBuilder(std::string_view text, const JsonSource& source) : text_(text), source_(source) {}

  Json take() { return std::move(document_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool key(std::string& name) override {
    open_.back().names.push_back(std::move(name));
    return true;
  }

  bool end_object() override {
    Level level = close();
    refuse_same(level.names);
    Json object = Json::object();
    // As a vector: a pair at the end is not looked for first.
    Json::object_t::Container& members = object.get_ref<Json::object_t&>();
    members.reserve(level.names.size());
    for (std::size_t i = 0; i < level.names.size(); ++i) {
      members.emplace_back(std::move(level.names[i]), std::move(level.values[i]));
    }
    return add(std::move(object));
  }

  bool end_array() override { return add(Json(close().values)); }

  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    source_.refuse(ErrorCode::corrupt_data,
                   "not JSON at " + stop_of(text_, byte) + ": " + cause_of(error) + "; correct the text there");
  }

 private:
  /// An object or a list whose end has not come yet.
  struct Level {
    std::vector<std::string> names = {};
    Json::array_t values = {};
  };

  bool open() {
    if (open_.size() >= static_cast<std::size_t>(source_.max_depth)) refuse_depth(text_, source_);
    open_.emplace_back();
    return true;
  }

  Level close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return level;
  }

  bool add(Json value) {
    if (++values_ > most_values) {
      source_.refuse(ErrorCode::corrupt_data,
                     "holds more than " + std::to_string(most_values) + " values; split what it is made of");
    }
    (open_.empty() ? document_ : open_.back().values.emplace_back()) = std::move(value);
    return true;
  }

  void refuse_same(const std::vector<std::string>& names) const {
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) refuse_repeated(text_, source_);
  }

  std::string_view text_;
  const JsonSource& source_;
  std::vector<Level> open_ = {};
  std::size_t values_ = 0;
  Json document_ = {};
};

}  // namespace

JsonPlace place_of_byte(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte));
  const auto newline = before.rfind('\n');
  return {1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
          before.size() - (newline == before.npos ? 0 : newline + 1) + 1};
}

std::optional<JsonPlace> find_field(std::string_view text, std::string_view field) {
  std::optional<JsonPlace> place;
  std::vector<std::size_t> ends = {0};  // how much of the field's path is met so far, by depth
  scan_json(text, [&](const JsonField& found) {
    ends.resize(found.depth);  // what holds it is on the way, else this would have been passed over
    if (!field.substr(ends.back()).starts_with(found.path.substr(ends.back()))) return Scanning::after;
    ends.push_back(found.path.size());
    if (found.path.size() < field.size()) return Scanning::inside;
    place = place_of_byte(text, found.byte);
    return Scanning::stop;
  });
  return place;
}

void JsonSource::refuse(ErrorCode code, const std::string& message) const { fail(code, function, prefix + message); }

void JsonSource::refuse_field(std::string_view field, const std::string& message) const {
  const auto place = find_field(text, field);
  refuse(ErrorCode::invalid_argument,
         (place ? to_text(*place) + ": " : "") + "field '" + shown(field) + "' " + message);
}

void JsonSource::refuse_unknown(std::string_view field, std::span<const std::string_view> known) const {
  std::string hint;
  const std::string_view last = field.substr(field.rfind('.') + 1);  // npos + 1 is 0
  for (const std::string& near : near_names(last, known)) hint += (hint.empty() ? "" : ", ") + near;
  // At the top, it may be another document altogether.
  const std::string check = last == field ? ", or check that this is a " + std::string(kind) : "";
  refuse_field(field, "is not a " + std::string(kind) + " field; remove it" +
                          (hint.empty() ? check : ", or did you mean " + hint + "?"));
}

Json parse_json(std::string_view text, const JsonSource& source) {
  // To the parser a zero byte is the end, and what follows it would be ignored.
  if (const auto zero = text.find('\0'); zero != text.npos) {
    source.refuse(ErrorCode::corrupt_data,
                  "not JSON at " + stop_of(text, zero + 1) + ": a zero byte; correct the text there");
  }
  JsonBuilder builder(text, source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json parse_known_json(std::string_view text) {
  constexpr int any_depth = 1 << 20;
  return parse_json(text, {"parse_known_json", "", "document", any_depth, text});
}

std::string as_utf8(const std::string& text) { return parse_known_json(dump_json(Json(text))).get<std::string>(); }

std::string dump_json(const Json& json, int indent) {
  return printable_json(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace xpuruntime
