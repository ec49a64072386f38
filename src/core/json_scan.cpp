#include "core/json_scan.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace xpuruntime {
namespace {

constexpr std::size_t deepest = 64;  // far beyond any document of ours; a hostile one costs no stack

class Scan {
 public:
  Scan(std::string_view text, const std::function<bool(const JsonField&)>& use) : text_(text), use_(use) {}

  /// False: stop, whether the caller said so or the text is no JSON.
  bool value(const std::string& path, std::size_t depth) {
    skip_blanks();
    if (at_end() || depth > deepest) return false;
    if (text_[at_] == '{') return members(path, depth + 1);
    if (text_[at_] == '[') return elements(path, depth + 1);
    if (text_[at_] == '"') return string().has_value();
    const std::size_t begin = at_;
    while (!at_end() && std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos) ++at_;
    return at_ > begin;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }

  void skip_blanks() {
    while (!at_end() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// A string with its escapes undone.
  std::optional<std::string> string() {
    const std::size_t begin = at_++;
    bool escapes = false;
    for (; !at_end() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') continue;
      escapes = true;
      ++at_;
    }
    if (at_end()) return std::nullopt;
    const std::string_view token = text_.substr(begin, ++at_ - begin);
    if (!escapes) return std::string(token.substr(1, token.size() - 2));
    const auto json = nlohmann::json::parse(token.begin(), token.end(), nullptr, false);
    return json.is_string() ? std::optional(json.get<std::string>()) : std::nullopt;
  }

  bool members(const std::string& path, std::size_t depth) {
    ++at_;
    if (take('}')) return true;
    std::set<std::string> names;
    do {
      skip_blanks();
      const std::size_t byte = at_;
      if (at_end() || text_[at_] != '"') return false;
      const auto name = string();
      if (!name) return false;
      const std::string field = path.empty() ? *name : path + "." + *name;
      if (!use_({field, byte, depth, !names.insert(*name).second})) return false;
      if (!take(':') || !value(field, depth)) return false;
    } while (take(','));
    return take('}');
  }

  bool elements(const std::string& path, std::size_t depth) {
    ++at_;
    if (take(']')) return true;
    std::size_t index = 0;
    do {
      skip_blanks();
      const std::string field = path + "[" + std::to_string(index++) + "]";
      if (!use_({field, at_, depth, false}) || !value(field, depth)) return false;
    } while (take(','));
    return take(']');
  }

  std::string_view text_;
  const std::function<bool(const JsonField&)>& use_;
  std::size_t at_ = 0;
};

}  // namespace

void scan_json(std::string_view text, const std::function<bool(const JsonField&)>& use) {
  Scan(text, use).value("", 0);
}

}  // namespace xpuruntime
