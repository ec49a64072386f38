#include "core/json_scan.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace xpuruntime {
namespace {

constexpr std::size_t deepest = 64;  // far beyond any document of this library; a hostile one costs no stack

class Scan {
 public:
  Scan(std::string_view text, const std::function<Scanning(const JsonField&)>& use) : text_(text), use_(use) {}

  /// False: stop, whether the caller said so or the text is not JSON.
  bool value(std::size_t depth) {
    skip_blanks();
    if (at_end() || depth > deepest) return false;
    if (text_[at_] == '{') return members(depth + 1);
    if (text_[at_] == '[') return elements(depth + 1);
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

  bool named_value(std::size_t depth) { return take(':') && value(depth); }

  /// Tells of a field, then goes through its value.
  bool field(std::string_view step, std::size_t byte, std::size_t depth, bool repeated,
             bool (Scan::*rest)(std::size_t)) {
    if (quiet_) return (this->*rest)(depth);
    const std::size_t before = path_.size();
    if (before != 0 && rest == &Scan::named_value) path_ += '.';
    path_ += step;
    const Scanning next = use_({path_, byte, depth, repeated});
    if (next == Scanning::stop) return false;
    quiet_ = next == Scanning::after;
    const bool whole = (this->*rest)(depth);
    quiet_ = false;
    path_.resize(before);
    return whole;
  }

  bool members(std::size_t depth) {
    ++at_;
    if (take('}')) return true;
    std::set<std::string> names;  // no hash: who writes the names could make them all fall together
    do {
      skip_blanks();
      const std::size_t byte = at_;
      if (at_end() || text_[at_] != '"') return false;
      auto name = string();
      if (!name) return false;
      const auto [known, added] = names.insert(std::move(*name));
      if (!field(*known, byte, depth, !added, &Scan::named_value)) return false;
    } while (take(','));
    return take('}');
  }

  bool elements(std::size_t depth) {
    ++at_;
    if (take(']')) return true;
    std::size_t index = 0;
    do {
      skip_blanks();
      if (!field("[" + std::to_string(index++) + "]", at_, depth, false, &Scan::value)) return false;
    } while (take(','));
    return take(']');
  }

  std::string_view text_;
  const std::function<Scanning(const JsonField&)>& use_;
  std::size_t at_ = 0;
  std::string path_ = {};  // of the current field: one text that grows and shrinks, as a copy for each field adds up
  bool quiet_ = false;     // inside of a field that is passed over
};

}  // namespace

void scan_json(std::string_view text, const std::function<Scanning(const JsonField&)>& use) {
  Scan(text, use).value(0);
}

}  // namespace xpuruntime
