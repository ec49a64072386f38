#pragma once

#include <cstddef>
#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

// How a dtype's elements lie in memory, at addresses of any alignment. `index` counts elements.

/// Reads an element as a double; 64-bit integers past 2^53 lose their last bits this way.
using LoadElement = double (*)(const void* base, std::int64_t index);
LoadElement loader_of(DataType dtype);

/// Writes a double, rounded once to the element type; integers are cut off and clamped to their range, NaN becomes 0.
using StoreElement = void (*)(void* base, std::int64_t index, double value);
StoreElement storer_of(DataType dtype);

/// Integers in 64 bits, without a detour through floats.
using LoadInteger = std::int64_t (*)(const void* base, std::int64_t index);
LoadInteger integer_loader_of(DataType dtype);
using StoreInteger = void (*)(void* base, std::int64_t index, std::int64_t value);
StoreInteger integer_storer_of(DataType dtype);

/// One element. What is stored as tf32 keeps the ten bits of mantissa that its arithmetic sees.
double load_element(DataType dtype, const std::byte* from);
void store_element(DataType dtype, std::byte* to, double value);

/// Writes a number that is given next to an array, in the array's dtype. False if it does not fit: integers are exact,
/// and in floats under 32 bits a number loses no more than its rounding, so none becomes 0 or infinity.
bool store_number(DataType dtype, std::byte* to, double number);
bool store_number(DataType dtype, std::byte* to, std::int64_t number);

/// The distance from 1 to the next number; 0 for integers, which are exact.
double epsilon_of(DataType dtype);

}  // namespace xpuruntime
