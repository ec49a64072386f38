#include "core/printable.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace xpuruntime {
namespace {

using Range = std::pair<char32_t, char32_t>;

// Controls, then what is invisible and turns, hides or breaks the text around it.
constexpr Range unprintable[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                                 {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
                                 {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

bool prints(char32_t point) {
  return std::none_of(std::begin(unprintable), std::end(unprintable),
                      [&](const Range& range) { return point >= range.first && point <= range.second; });
}

struct Character {
  std::size_t bytes = 1;
  char32_t point = 0;
  bool valid = false;
};

/// The character at the front: shortest form, no surrogates, at most U+10FFFF.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t point = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    point = point << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t least[] = {0x80, 0x800, 0x10000};
  if (point < least[bytes - 2] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return {};
  return {bytes, point, true};
}

template <class... Numbers>
void append_format(std::string& out, const char* format, Numbers... numbers) {
  char text[24];
  std::snprintf(text, sizeof text, format, numbers...);
  out += text;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const bool keep = character.valid && (prints(character.point) || kept.find(text[0]) != kept.npos);
    if (keep) {
      out += text.substr(0, character.bytes);
    } else if (!character.valid || character.point < 0x80) {
      append_format(out, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    } else {
      append_format(out, "\\u%04x", static_cast<unsigned>(character.point));
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, {}); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

std::string shown(std::string_view text) {
  constexpr std::size_t most = 160;
  std::size_t end = std::min(text.size(), most);
  // Not in the middle of a character.
  while (end < text.size() && end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return printable(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string printable_json(std::string json) {
  // Most documents have nothing of the kind.
  const bool plain = std::all_of(json.begin(), json.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; });
  if (plain) return json;
  std::string out;
  out.reserve(json.size());
  std::string_view left = json;
  while (!left.empty()) {
    const Character character = first_of(left);
    if (left[0] == '\n' || prints(character.point)) {
      out += left.substr(0, character.bytes);
    } else if (character.point < 0x10000) {
      append_format(out, "\\u%04x", static_cast<unsigned>(character.point));
    } else {
      const auto above = static_cast<unsigned>(character.point - 0x10000);
      append_format(out, "\\u%04x\\u%04x", 0xd800u + (above >> 10), 0xdc00u + (above & 0x3ffu));
    }
    left.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace xpuruntime
