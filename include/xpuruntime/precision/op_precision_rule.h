#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/op.h"
#include "xpuruntime/precision/amp_config.h"

namespace xpuruntime {

/// A float type that tensors are stored in, and so can be cast to: every one but tfloat32.
inline bool is_float_storage(DataType dtype) { return is_floating(dtype) && dtype != DataType::tfloat32; }

/// What a rule asks of one direction of an op.
enum class OpPrecision : std::uint8_t { higher, lower, keep, custom };
std::string_view to_string(OpPrecision precision);

/// What is requested for one direction: a tendency that AmpConfig gives a dtype to, or with `custom` the dtype itself.
struct RequestedPrecision {
  OpPrecision precision = OpPrecision::keep;
  DataType custom = DataType::float32;  // counts for `custom` alone

  bool operator==(const RequestedPrecision& other) const {
    return precision == other.precision && (precision != OpPrecision::custom || custom == other.custom);
  }
};

/// "higher", "lower", "keep", or a dtype in any of its spellings.
RequestedPrecision parse_requested_precision(std::string_view text);
std::string to_string(const RequestedPrecision& requested);

/// What a policy says of one op. A direction that it leaves open is for the next in line to decide; only, backward
/// follows a forward that is not open.
struct DirectionPrecisions {
  std::optional<RequestedPrecision> forward = {};
  std::optional<RequestedPrecision> backward = {};

  bool operator==(const DirectionPrecisions&) const = default;
};

/// The dtype that is requested for data in this one. Integers and bools never change; unless the request is custom,
/// FP64 is not narrowed and one 16-bit format does not become the other.
DataType resolve(const RequestedPrecision& requested, const AmpConfig& config, DataType input);

/// The precision of one op, forward and backward. A value: registries copy it in and hand out copies.
struct OpPrecisionRule {
  OpId op = OpId::matmul;
  OpPrecision forward_precision = OpPrecision::keep;
  OpPrecision backward_precision = OpPrecision::keep;  // keep: as forward
  std::optional<DataType> custom_forward_dtype = {};
  std::optional<DataType> custom_backward_dtype = {};
  int priority = 0;  // higher wins; at equal priority the latest

  bool operator==(const OpPrecisionRule&) const = default;

  static OpPrecisionRule make(OpId op, const RequestedPrecision& forward, const RequestedPrecision& backward,
                              int priority = 0);

  RequestedPrecision forward() const;
  RequestedPrecision backward() const;
  DataType get_forward_dtype(const AmpConfig& config, DataType input) const;
  /// `keep` follows what forward made of the input.
  DataType get_backward_dtype(const AmpConfig& config, DataType input) const;

  /// Fails on `custom` without a dtype, a dtype without `custom`, and dtypes that are not floating.
  void check() const;
};

}  // namespace xpuruntime
