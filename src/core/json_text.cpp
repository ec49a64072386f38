#include "core/json_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/claimed_files.h"
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
    if (field.depth <= static_cast<std::size_t>(source.max_depth)) return true;
    place = to_text(place_of_byte(text, field.byte)) + ": ";
    return false;
  });
  source.refuse(ErrorCode::corrupt_data,
                place + "nested deeper than a " + std::string(source.kind) + " can be; compare it with the manual");
}

[[noreturn]] void refuse_repeated(std::string_view text, const JsonSource& source) {
  std::string message = "a name stands twice; remove one";
  scan_json(text, [&](const JsonField& field) {
    if (!field.repeated) return true;
    message = to_text(place_of_byte(text, field.byte)) + ": field '" + shown(field.path) + "' stands twice; remove one";
    return false;
  });
  source.refuse(ErrorCode::invalid_argument, message);
}

/// Stops at nesting that the document cannot have, and at a name that stands twice.
class Watch {
 public:
  Watch(std::string_view text, const JsonSource& source) : text_(text), source_(source) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= source_.max_depth) {
      refuse_depth(text_, source_);
    }
    if (event == Event::object_start) {
      std::erase_if(seen_, [depth](const auto& name) { return name.first > depth; });
    }
    if (event == Event::key && !seen_.emplace(depth, value.get<std::string>()).second) {
      refuse_repeated(text_, source_);
    }
    return true;
  }

 private:
  std::string_view text_;
  const JsonSource& source_;
  std::set<std::pair<int, std::string>> seen_ = {};
};

/// A file that is removed again unless it was renamed to its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) {
    // Not mkstemp: its files are private, and a policy is as readable as any other file of the user's.
    static std::atomic<unsigned> count{0};
    do {
      name_ = path + "." + std::to_string(getpid()) + "-" + std::to_string(count++);
      handle_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (handle_ < 0 && errno == EEXIST);
  }
  ~TemporaryFile() {
    if (handle_ >= 0) close(handle_);
    if (handle_ >= 0 && !kept_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool write_all(std::string_view text) const {
    if (handle_ < 0) return false;
    while (!text.empty()) {
      const ssize_t written = ::write(handle_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return fsync(handle_) == 0;
  }
  bool move_to(const std::string& path) { return kept_ = rename(name_.c_str(), path.c_str()) == 0; }

 private:
  std::string name_ = {};
  int handle_ = -1;
  bool kept_ = false;
};

void refuse_claimed(const std::string& path, const JsonSource& source) {
  if (is_claimed(path)) source.refuse(ErrorCode::io_error, "is a store that this process has open; name another file");
}

/// The file behind a path's links, also where it is still to be made: a rename would put it in the place of the link.
/// It would put it in the place of a device or a pipe just so, and what is written to those is not kept anyway.
std::string target_of(const std::string& path, const JsonSource& source) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // what cannot be looked at cannot be written: that says why
  const fs::file_status there = fs::status(path, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    source.refuse(ErrorCode::io_error, std::string("cannot be written: it is ") +
                                           (fs::is_directory(there) ? "a folder" : "a device, a pipe or a socket") +
                                           "; name a file");
  }
  constexpr int most_links = 40;  // as the system itself follows
  fs::path target = path;
  for (int i = 0; i < most_links && fs::is_symlink(fs::symlink_status(target, ignored)); ++i) {
    target = target.parent_path() / fs::read_symlink(target, ignored);  // an absolute one replaces the folder
  }
  if (fs::is_symlink(fs::symlink_status(target, ignored))) {
    source.refuse(ErrorCode::io_error, "cannot be written: its links lead nowhere; name a file");
  }
  return target.string();
}

}  // namespace

JsonPlace place_of_byte(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte));
  const auto newline = before.rfind('\n');
  return {1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
          before.size() - (newline == before.npos ? 0 : newline + 1) + 1};
}

std::optional<JsonPlace> find_field(std::string_view text, std::string_view field) {
  std::optional<JsonPlace> place;
  scan_json(text, [&](const JsonField& found) {
    if (found.path == field) place = place_of_byte(text, found.byte);
    return !place;
  });
  return place;
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, 160));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
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
  refuse_field(field, "is not a " + std::string(kind) + " field; " +
                          (hint.empty() ? "remove it" : "remove it, or did you mean " + hint + "?"));
}

Json parse_json(std::string_view text, const JsonSource& source) {
  // To the parser a zero byte is the end, and what follows it would be ignored.
  if (const auto zero = text.find('\0'); zero != text.npos) {
    source.refuse(ErrorCode::corrupt_data,
                  "not JSON at " + stop_of(text, zero + 1) + ": a zero byte; correct the text there");
  }
  try {
    return Json::parse(text.begin(), text.end(), Watch(text, source));
  } catch (const Json::parse_error& error) {
    source.refuse(ErrorCode::corrupt_data,
                  "not JSON at " + stop_of(text, error.byte) + ": " + cause_of(error) + "; correct the text there");
  } catch (const Json::exception& error) {
    source.refuse(ErrorCode::corrupt_data, "not JSON: " + cause_of(error) + "; correct that value");
  }
}

Json parse_known_json(std::string_view text) { return Json::parse(text.begin(), text.end()); }

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string read_text_file(const std::string& path, const JsonSource& source, std::size_t most_bytes) {
  refuse_claimed(path, source);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // In pieces: most files are far smaller than the most that one may be.
  constexpr std::size_t piece = std::size_t{1} << 16;
  while (file && text.size() <= most_bytes) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    file.read(text.data() + before, static_cast<std::streamsize>(piece));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !(file || file.eof())) {
    source.refuse(ErrorCode::io_error, "cannot be read; check that it exists and that you may read it");
  }
  if (text.size() > most_bytes) {
    source.refuse(ErrorCode::corrupt_data,
                  "larger than any " + std::string(source.kind) + "; check that it is the right file");
  }
  return text;
}

void write_file_atomically(const std::string& path, std::string_view text, const JsonSource& source) {
  refuse_claimed(path, source);
  const std::string target = target_of(path, source);
  TemporaryFile file(target);
  if (!file.write_all(text) || !file.move_to(target)) {
    source.refuse(ErrorCode::io_error, std::string("cannot be written: ") + std::strerror(errno) +
                                           "; check the folder and the free space. What was there is unchanged");
  }
}

}  // namespace xpuruntime
