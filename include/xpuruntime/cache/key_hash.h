#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

namespace xpuruntime {

/// The hash of a cache's key where none is named: std::hash, and for pairs and tuples, which have none, that of their
/// parts in order. Keys are compared whole, so two with one hash only share a place.
template <typename Key>
struct KeyHash : std::hash<Key> {};

namespace detail {

template <typename... Parts>
std::size_t hash_parts(const Parts&... parts) {
  std::uint64_t hash = sizeof...(Parts);
  // Multiplied after each part, so that the order counts; shifted down, as tables look at the low bits.
  const auto mix = [&hash](std::uint64_t part) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  (mix(KeyHash<Parts>{}(parts)), ...);
  return static_cast<std::size_t>(hash);
}

}  // namespace detail

template <typename First, typename Second>
struct KeyHash<std::pair<First, Second>> {
  std::size_t operator()(const std::pair<First, Second>& key) const {
    return detail::hash_parts(key.first, key.second);
  }
};

template <typename... Parts>
struct KeyHash<std::tuple<Parts...>> {
  std::size_t operator()(const std::tuple<Parts...>& key) const {
    return std::apply([](const Parts&... parts) { return detail::hash_parts(parts...); }, key);
  }
};

}  // namespace xpuruntime
