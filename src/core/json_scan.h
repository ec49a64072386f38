#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace xpuruntime {

/// A name or a list element that a scan came by. The path lasts until the next one.
struct JsonField {
  std::string_view path = {};  // "rules[1].when.m"
  std::size_t byte = 0;        // where its name, or the element, begins
  std::size_t depth = 0;       // objects and lists around it
  bool repeated = false;       // its object has that name already
};

/// What a scan does next: look at what is inside of the field, go on after it, or stop.
enum class Scanning { inside, after, stop };

/// Walks through a JSON text and calls `use` with each field, in time linear in the text. The parser says what is wrong
/// with a text but not where each field stands; this is the other half. It stops without a word where the text is no
/// JSON.
void scan_json(std::string_view text, const std::function<Scanning(const JsonField&)>& use);

}  // namespace xpuruntime
