#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_text.h"

namespace xpuruntime {

/// An object of a document that is read strictly: each field asked for must be there with its type, and `done` refuses
/// those that nobody asked for.
class JsonFields {
 public:
  /// `place` is the object's own name in messages, such as "measurements[2]"; empty for the document itself.
  JsonFields(const Json& object, std::string place, const JsonSource& source);

  std::string text(std::string_view name);
  std::string text_or_empty(std::string_view name);  // where it is not there
  double number(std::string_view name);              // 0 or more
  std::int64_t integer(std::string_view name);
  std::uint64_t whole(std::string_view name);  // 0 or more
  bool boolean(std::string_view name);
  std::map<std::string, std::string> texts(std::string_view name);
  const Json& list(std::string_view name);
  /// As it stands, null too.
  const Json& value(std::string_view name);
  void done() const;

  std::string place_of(std::string_view name) const;
  const JsonSource& source() const { return source_; }

 private:
  const Json& object_;
  std::string place_;
  const JsonSource& source_;
  std::vector<std::string_view> known_ = {};
};

/// The text with bytes that are not UTF-8 replaced: what a driver or a kernel says may hold anything.
std::string as_utf8(const std::string& text);

}  // namespace xpuruntime
