#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/printable.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {

using Json = nlohmann::ordered_json;

/// Where a JSON text came from, so that every error about it names the function, the file, the field and its place.
struct JsonSource {
  std::string_view function = {};
  std::string prefix = {};             // "profile file 'x.json': "
  std::string_view kind = {};          // "profile", "policy"
  int max_depth = 2;                   // deeper nesting is refused before it costs anything
  std::string_view text = {};          // what is being read; errors about a field then name its line and column
  std::string_view remedy = "add it";  // where a field is missing

  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const;
  [[noreturn]] void refuse_field(std::string_view field, const std::string& message) const;
  /// For a name that is not a field; near ones among `known` are listed.
  [[noreturn]] void refuse_unknown(std::string_view field, std::span<const std::string_view> known) const;
};

/// Line and column of a byte, both from 1.
struct JsonPlace {
  std::size_t line = 1;
  std::size_t column = 1;

  bool operator==(const JsonPlace&) const = default;
};
JsonPlace place_of_byte(std::string_view text, std::size_t byte);

/// Where a field's name stands ("rules[1].when.m"), or an element of a list; nothing where there is none.
std::optional<JsonPlace> find_field(std::string_view text, std::string_view field);

/// Strict JSON: comments, trailing text, duplicate names and deep nesting are errors with line and column.
/// Takes n log n steps in the length of the text.
Json parse_json(std::string_view text, const JsonSource& source);

/// What is known to be JSON: this library has printed it, or read it before.
Json parse_known_json(std::string_view text);

/// The text with bytes that are not UTF-8 replaced: what a driver or a kernel says may hold anything.
std::string as_utf8(const std::string& text);

/// So many spaces a level, -1: all in one line. Bytes that are no UTF-8 become replacement characters.
std::string dump_json(const Json& json, int indent = -1);

// ---- files: every file that the library reads or writes goes through these ----

/// A whole regular file of at most so many bytes: a file that is larger is not what it should be. A pipe, a device or a
/// folder is refused at once and never waited for.
std::string read_text_file(const std::string& path, const JsonSource& source,
                           std::size_t most_bytes = std::size_t{1} << 20);

/// Writes to a temporary name in the same folder, syncs, renames: the file is the old one or the new one, never half.
/// It keeps the permissions of the old one. Through a link it is the file behind it. What is no regular file, or is an
/// SQLite database, is refused.
void write_file_atomically(const std::string& path, std::string_view text, const JsonSource& source);

/// Why a path can be no file to write to; empty where it may be one. For those who ask before they work.
std::string flaw_of_output_file(const std::string& path);

/// The same for write_file_atomically, which needs a folder in which files can be made: it makes one and removes it.
std::string flaw_of_new_file(const std::string& path);

/// Whether two paths name one file, also through links and where it is still to be made.
bool same_file(const std::string& a, const std::string& b);

}  // namespace xpuruntime
