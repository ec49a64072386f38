#pragma once

#include <string>
#include <string_view>

namespace xpuruntime {

// Texts from files, arguments and drivers may hold what a terminal obeys: escape sequences, C1 controls, marks that
// turn the direction of writing. Whatever is printed goes through one of these, so that it is only ever shown.

/// The text in one line. What does not print is written out: \x1b for a byte, \u202e for a character. Bytes that are
/// not UTF-8 are written out too.
std::string printable(std::string_view text);

/// The same for a text of several lines: line ends and tabs stay.
std::string printable_lines(std::string_view text);

/// The beginning of a text, printable and short.
std::string shown(std::string_view text);

/// A JSON document with such characters as escapes of its strings, which mean the same.
std::string printable_json(std::string json);

}  // namespace xpuruntime
