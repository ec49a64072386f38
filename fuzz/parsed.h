#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"

/// What `parse` reads from the text; nothing if that is refused with an Error.
template <class Parse>
auto parsed(std::string_view text, Parse parse) -> std::optional<decltype(parse(text))> {
  try {
    return parse(text);
  } catch (const xpuruntime::Error&) {
    return {};
  }
}

/// What the bytes are read as, whose JSON must read back as an equal one; nothing if they are refused with an Error.
template <class Object>
std::optional<Object> round_trip(const std::uint8_t* data, std::size_t size) {
  const auto object = parsed({reinterpret_cast<const char*>(data), size},
                             [](std::string_view json) { return Object::from_json(json); });
  if (!object) return {};
  const std::string json = object->to_json();
  const Object again = Object::from_json(json);
  if (again != *object || again.to_json() != json) std::abort();
  return object;
}
