#include "runtime/opencl_parameters.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view of_kernel = "OpenclKernel";

/// Without comments and with one blank for any number of them.
std::string plain(std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//")) i += std::min(rest.find('\n'), rest.size() - 1);
    if (rest.starts_with("/*")) i += std::min(rest.find("*/", 2), rest.size() - 2) + 1;
    const bool blank =
        rest.starts_with("/*") || rest.starts_with("//") || std::isspace(static_cast<unsigned char>(text[i]));
    if (!blank) all += text[i];
    if (blank && !all.empty() && all.back() != ' ') all += ' ';
  }
  return all;
}

/// "__global float* x" without its name and the words that do not matter for a value.
std::string type_of(std::string parameter) {
  const auto trim = [&] {
    while (!parameter.empty() && parameter.back() == ' ') parameter.pop_back();
    parameter.erase(0, std::min(parameter.find_first_not_of(' '), parameter.size()));
  };
  trim();
  while (!parameter.empty() && (std::isalnum(static_cast<unsigned char>(parameter.back())) || parameter.back() == '_'))
    parameter.pop_back();
  trim();
  for (const std::string_view word : {"const ", "__private ", "private "})
    if (parameter.starts_with(word)) parameter.erase(0, word.size());
  return parameter;
}

/// What a name stands for that the source gives a type with typedef; else the name.
std::string without_typedefs(std::string type, std::string_view text) {
  constexpr std::string_view word = "typedef ";
  for (int level = 0; level < 8; ++level) {
    const std::string before = type;
    for (std::size_t at = text.find(word); at != std::string_view::npos && type == before;
         at = text.find(word, at + 1)) {
      const std::size_t first = at + word.size(), end = text.find(';', first);
      if (end == std::string_view::npos) break;
      std::string_view body = text.substr(first, end - first);
      while (body.ends_with(' ')) body.remove_suffix(1);
      if (!body.ends_with(type) || body.size() == type.size()) continue;
      const char last = body[body.size() - type.size() - 1];
      if (last == ' ' || last == '*') type = type_of(std::string(body));
    }
    if (type == before) break;
  }
  return type;
}

/// The types in a list of parameters; nothing where a macro or a directive may hide some.
std::vector<std::string> types_in_list(std::string_view list) {
  std::vector<std::string> types;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    types.push_back(type_of(std::string(list.substr(0, end))));
    if (types.back().empty() || types.back().find_first_of("(#") != std::string::npos) return {};
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return types;
}

/// The name of a type without its address space, size, sign and stars: "float" of "__global const float4*".
std::string element_name(std::string type) {
  for (const std::string_view word :
       {"__global ", "global ", "__constant ", "constant ", "const ", "volatile ", "restrict ", "unsigned ", "signed "})
    if (type.starts_with(word)) type.erase(0, word.size());
  type.erase(std::min(type.find_first_of(" *[0123456789"), type.size()));
  return type;
}

/// Whether a tensor's elements can be what the parameter points to: floats of the same type, or as many bytes.
bool points_to(const std::string& type, DataType dtype) {
  const std::string name = element_name(type);
  if (name == "float") return dtype == DataType::float32;
  if (name == "half") return dtype == DataType::float16;
  if (name == "double") return dtype == DataType::float64;
  constexpr std::pair<std::string_view, std::size_t> sizes[] = {{"short", 2}, {"ushort", 2}, {"int", 4},
                                                                {"uint", 4},  {"long", 8},   {"ulong", 8}};
  for (const auto& [known, bytes] : sizes)
    if (name == known) return size_of(dtype) == bytes;
  return true;  // bytes, and names that only the compiler knows
}

/// Whether a value of this kind can be the parameter's.
bool holds(const std::string& type, FunctionArgument::Number number) {
  if (number == FunctionArgument::Number::any) return true;
  const std::string name = element_name(type);
  const bool real = name == "float" || name == "double" || name == "half";
  return name == "half" || real == (number == FunctionArgument::Number::real);
}

Takes kind_of(const FunctionArgument& argument) {
  if (!argument.value.empty()) return Takes::number;
  return argument.local_bytes != 0 ? Takes::local : Takes::tensor;
}

constexpr std::string_view words(Takes takes) {
  return takes == Takes::number ? "a number" : takes == Takes::local ? "LocalMemory" : "a tensor";
}

/// Bytes of a value of this type; 0 where only the compiler knows.
std::size_t bytes_of(const std::string& type) {
  struct Known {
    std::string_view name;
    std::size_t bytes;
  };
  constexpr Known all[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},   {"int", 4},
                           {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8}, {"unsigned", 4}};
  std::string name = type;
  for (const std::string_view sign : {"unsigned ", "signed "})
    if (name.starts_with(sign)) name.erase(0, sign.size());
  const std::size_t digits = name.find_first_of("0123456789");
  std::size_t count = digits == std::string::npos ? 1 : static_cast<std::size_t>(std::atoi(name.c_str() + digits));
  if (count == 3) count = 4;  // as OpenCL C lays them out
  for (const Known& known : all)
    if (name.substr(0, digits) == known.name) return count * known.bytes;
  return 0;
}

bool is_vector(const std::string& type) { return !type.empty() && type.back() >= '0' && type.back() <= '9'; }

/// "argument 1 of 'scale'"
std::string argument_of(std::size_t i, const std::string& name) {
  return "argument " + std::to_string(i) + " of '" + name + "'";
}

// Drivers take eight bytes of any kind for another eight, and then read memory that is not there.
void check_number(const FunctionArgument& argument, const std::string& type, const std::string& what) {
  const std::size_t given = argument.value.size(), wanted = bytes_of(type);
  if (is_vector(type) && wanted != given)
    fail(ErrorCode::invalid_argument, of_kernel,
         what + ", of " + std::to_string(given) + " bytes, does not fit its parameter '" + type + "', of " +
             std::to_string(wanted) + ": pass all of its bytes as one value, or put it in a tensor");
  if (!is_vector(type) && !holds(type, argument.number))
    fail(ErrorCode::invalid_argument, of_kernel,
         what + " is " +
             (argument.number == FunctionArgument::Number::real ? "a floating-point number" : "an integer") +
             ", and its parameter is '" + type + "': pass a number of that type");
  if (wanted != 0 && wanted != given)
    fail(ErrorCode::invalid_argument, of_kernel,
         what + ", of " + std::to_string(given) + " bytes, does not fit its parameter '" + type + "', of " +
             std::to_string(wanted) + ": pass a number of exactly that type");
}

}  // namespace

std::vector<std::string> types_in(std::string_view source, const std::string& name) {
  const std::string text = plain(source), head = "void " + name;
  std::vector<std::string> types;
  for (std::size_t at = text.find(head); at != std::string::npos; at = text.find(head, at + 1)) {
    const std::size_t open = text.find_first_not_of(' ', at + head.size()), close = text.find(')', at);
    if (open == std::string::npos || text[open] != '(' || close == std::string::npos) continue;
    std::vector<std::string> found = types_in_list(std::string_view(text).substr(open + 1, close - open - 1));
    for (std::string& type : found) type = without_typedefs(std::move(type), text);
    if (!types.empty() && found != types) return {};
    types = std::move(found);
  }
  return types;
}

Takes takes_of(std::string type) {
  if (type.find_first_of("*[") != std::string::npos) {
    if (type.starts_with("__local ") || type.starts_with("local ")) return Takes::local;
    return type.find("local") == std::string::npos ? Takes::tensor : Takes::unknown;
  }
  for (const std::string_view ours : {"image1d_", "image2d_", "image3d_", "sampler_t", "event_t", "pipe ", "queue_t"})
    if (type.find(ours) != std::string::npos) return Takes::nothing;
  for (const std::string_view sign : {"unsigned ", "signed "})
    if (type.starts_with(sign)) type.erase(0, sign.size());
  type.erase(type.find_last_not_of("0123456789") + 1);  // float4
  for (const std::string_view name : {"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "unsigned",
                                      "half", "float", "double", "bool", "size_t"})
    if (type == name) return Takes::number;
  return Takes::unknown;
}

void check_kinds(const std::vector<FunctionArgument>& arguments, const std::vector<std::string>& types,
                 const std::string& name) {
  for (std::size_t i = 0; i < std::min(arguments.size(), types.size()); ++i) {
    const Takes given = kind_of(arguments[i]), wanted = takes_of(types[i]);
    if (wanted == Takes::nothing)
      fail(ErrorCode::not_supported, of_kernel,
           "parameter " + std::to_string(i) + " of '" + name + "' is '" + types[i] +
               "', which cannot be given: use buffers and numbers");
    if (wanted != Takes::unknown && wanted != given)
      fail(ErrorCode::invalid_argument, of_kernel,
           argument_of(i, name) + " is " + std::string(words(given)) + ", and its parameter is '" + types[i] +
               "': pass " + (is_vector(types[i]) ? "all of its bytes as one value" : std::string(words(wanted))));
    if (wanted == Takes::tensor && !points_to(types[i], arguments[i].tensor.spec().dtype))
      fail(ErrorCode::invalid_argument, of_kernel,
           argument_of(i, name) + " is a tensor of " + std::string(to_string(arguments[i].tensor.spec().dtype)) +
               ", and its parameter is '" + types[i] + "'");
    if (wanted == Takes::number) check_number(arguments[i], types[i], argument_of(i, name));
  }
}

}  // namespace xpuruntime
