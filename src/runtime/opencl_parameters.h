#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/device/source_function.h"

// What the source of a kernel says of its parameters, and whether arguments fit them.

namespace xpuruntime {

/// The types of the parameters of a function; nothing where the source has two of that name that differ.
std::vector<std::string> types_in(std::string_view source, const std::string& name);

/// What a parameter of this type takes; `unknown` for names that only the compiler knows.
enum class Takes : std::uint8_t { unknown, tensor, local, number, nothing };
Takes takes_of(std::string type);

/// An error that names the first argument that is not of its parameter's kind, type or size, as far as the source says.
void check_kinds(const std::vector<FunctionArgument>& arguments, const std::vector<std::string>& types,
                 const std::string& name);

}  // namespace xpuruntime
