#include "select/rule_terms.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <type_traits>

#include "core/backward.h"
#include "core/op_table.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

using P = DeviceProfile;
using Reader = Fact (*)(const Problem&, const DeviceProfile&);

struct PlainTerm {
  std::string_view name = {};
  TermKind kind = TermKind::integer;
  Reader read = nullptr;
  std::string_view summary = {};
  std::string_view choices = {};
};

// ---- facts of calls and devices ----

// Memory sizes may use all 64 bits; what is past the signed range is as good as its end to a rule.
Fact saturated(std::uint64_t value) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return value > static_cast<std::uint64_t>(most) ? most : static_cast<std::int64_t>(value);
}

Fact fact_of(bool value) { return value; }
Fact fact_of(int value) { return std::int64_t{value}; }
Fact fact_of(std::uint32_t value) { return std::int64_t{value}; }
Fact fact_of(std::uint64_t value) { return saturated(value); }
Fact fact_of(const std::string& value) { return value; }
Fact fact_of(DeviceType value) { return std::string(to_string(value)); }
Fact fact_of(const std::vector<std::string>& value) { return value; }
Fact fact_of(const std::vector<std::uint32_t>& value) { return std::vector<std::int64_t>(value.begin(), value.end()); }

constexpr TermKind kind_of(const bool&) { return TermKind::boolean; }
template <class T>
requires std::is_integral_v<T>
constexpr TermKind kind_of(const T&) { return TermKind::integer; }
inline TermKind kind_of(const std::string&) { return TermKind::text; }
inline TermKind kind_of(const DeviceType&) { return TermKind::device_type; }
inline TermKind kind_of(const std::vector<std::string>&) { return TermKind::texts; }
inline TermKind kind_of(const std::vector<std::uint32_t>&) { return TermKind::integers; }

template <auto member>
PlainTerm profile_field(std::string_view name, std::string_view summary) {
  return {name, kind_of(P().*member), [](const Problem&, const P& profile) { return fact_of(profile.*member); },
          summary};
}

Fact elements_of(const Problem& problem, const P&) {
  std::int64_t most = 0;
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) most = std::max(most, element_count(spec));
  }
  return most;
}

Fact direction_of(const Problem& problem, const P&) {
  return std::string(problem.direction == Direction::forward ? "forward" : "backward");
}

Fact compute_capability(const Problem&, const P& profile) {
  return (profile.compute_capability_major * 10 + profile.compute_capability_minor) /
         10.0;  // exactly what 8.6 reads as
}

Fact count(const std::vector<TensorSpec>& specs) { return static_cast<std::int64_t>(specs.size()); }

const std::vector<PlainTerm>& plain_terms() {
  static const auto& terms = *new std::vector<PlainTerm>{
      {"dtype", TermKind::dtype,
       [](const Problem& p, const P&) -> Fact { return std::string(to_string(promoted_dtype(p))); },
       "what the call is computed in: the float inputs' dtype, promoted without loss"},
      {"direction", TermKind::choice, direction_of, "forward or backward", "forward|backward"},
      {"elements", TermKind::integer, elements_of, "elements of the largest input or output"},
      {"inputs.count", TermKind::integer, [](const Problem& p, const P&) { return count(p.inputs); }, "inputs given"},
      {"outputs.count", TermKind::integer, [](const Problem& p, const P&) { return count(p.outputs); }, "outputs"},
      {"deterministic", TermKind::boolean, [](const Problem& p, const P&) -> Fact { return p.limits.deterministic; },
       "whether only kernels may run that give the same bits every time"},
      {"threads", TermKind::integer,
       [](const Problem& p, const P&) { return p.limits.threads ? fact_of(*p.limits.threads) : Fact{}; },
       "most threads of a CPU kernel, where that is limited"},
      {"workspace_limit_bytes", TermKind::integer,
       [](const Problem& p, const P&) {
         return p.limits.workspace_bytes ? fact_of(*p.limits.workspace_bytes) : Fact{};
       },
       "most temporary memory, where that is limited"},
      {"device.index", TermKind::integer, [](const Problem& p, const P&) { return fact_of(int{p.device.index}); },
       "0 of cuda:0"},
      {"device.compute_capability", TermKind::real, compute_capability, "NVIDIA only: 8.6, 9.0; 0 elsewhere"},
      profile_field<&P::type>("device.type", "cpu, cuda, opencl, npu ..."),
      profile_field<&P::vendor>("device.vendor", "lower case: nvidia, intel, amd, apple, arm, pocl ..."),
      profile_field<&P::name>("device.name", "as the driver prints it"),
      profile_field<&P::driver_version>("device.driver_version", "as the driver prints it"),
      profile_field<&P::compute_capability_major>("device.compute_capability_major", "NVIDIA only"),
      profile_field<&P::compute_capability_minor>("device.compute_capability_minor", "NVIDIA only"),
      profile_field<&P::compute_units>("device.compute_units", "cores, multiprocessors"),
      profile_field<&P::integrated>("device.integrated", "shares memory with the host"),
      profile_field<&P::global_memory_bytes>("device.global_memory_bytes", "all of its memory"),
      profile_field<&P::local_memory_bytes>("device.local_memory_bytes", "of a work-group or block"),
      profile_field<&P::l1_bytes>("device.l1_bytes", "first-level data cache of a core"),
      profile_field<&P::l2_bytes>("device.l2_bytes", "second-level cache"),
      profile_field<&P::l3_bytes>("device.l3_bytes", "third-level cache"),
      profile_field<&P::cache_line_bytes>("device.cache_line_bytes", "of a cache line"),
      profile_field<&P::max_work_group_size>("device.max_work_group_size", "work-items of a group"),
      profile_field<&P::max_work_item_sizes>("device.max_work_item_sizes", "work-items of a group, by dimension"),
      profile_field<&P::sub_group_size>("device.sub_group_size", "warp, wavefront; 0 unknown"),
      profile_field<&P::fp16>("device.fp16", "computes in FP16"),
      profile_field<&P::bf16>("device.bf16", "computes in BF16"),
      profile_field<&P::fp64>("device.fp64", "computes in FP64"),
      profile_field<&P::int8>("device.int8", "computes in INT8"),
      profile_field<&P::fp8>("device.fp8", "computes in FP8"),
      profile_field<&P::tensor_cores>("device.tensor_cores", "has matrix units of any vendor"),
      profile_field<&P::cpu_features>("device.cpu_features", "avx2, avx512f, amx_bf16, neon ..."),
      profile_field<&P::extensions>("device.extensions", "cl_khr_fp16 ..."),
  };
  return terms;
}

std::optional<Term> find_plain(std::string_view key) {
  for (const PlainTerm& term : plain_terms()) {
    if (term.name == key) return Term{term.kind, term.choices, 0, term.read};
  }
  constexpr std::string_view libraries = "device.library_versions.";
  if (!key.starts_with(libraries) || key.size() == libraries.size()) return std::nullopt;
  return Term{
      TermKind::text, {}, 0, [name = std::string(key.substr(libraries.size()))](const Problem&, const P& profile) {
        const auto found = profile.library_versions.find(name);
        return found == profile.library_versions.end() ? Fact{} : Fact{found->second};
      }};
}

// ---- sizes and attributes of the op ----

TermKind kind_of(AttributeKind kind) {
  constexpr TermKind kinds[] = {TermKind::boolean,  TermKind::integer, TermKind::real,
                                TermKind::integers, TermKind::choice,  TermKind::dtype};
  return kinds[static_cast<std::size_t>(kind)];
}

Fact size_fact(const SizeSpec& spec, const Problem& forward) {
  std::vector<std::int64_t> sizes = spec.read(forward);
  if (sizes.empty()) return {};
  if (spec.kind == AttributeKind::integers) return sizes;
  return spec.kind == AttributeKind::boolean ? Fact(sizes[0] != 0) : Fact(sizes[0]);
}

std::optional<Term> find_size(OpId op, std::string_view key) {
  for (const SizeSpec& spec : op_info(op).sizes) {
    if (spec.name != key) continue;
    return Term{kind_of(spec.kind), {}, spec.length, [spec](const Problem& problem, const P&) {
                  const bool forward = problem.direction == Direction::forward;
                  return forward ? size_fact(spec, problem) : size_fact(spec, forward_of(problem));
                }};
  }
  return std::nullopt;
}

Fact attribute(const Attributes& attributes, std::string_view name, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return attributes.boolean(name);
    case AttributeKind::integer:
      return attributes.integer(name);
    case AttributeKind::real:
      return attributes.real(name);
    case AttributeKind::integers:
      return attributes.list(name);
    case AttributeKind::choice:
      return std::string(attributes.choice(name));
    case AttributeKind::dtype:
      return std::string(to_string(attributes.data_type(name)));
  }
  return {};
}

std::optional<Term> find_attribute(OpId op, std::string_view key) {
  constexpr std::string_view prefix = "attributes.";
  if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
  for (const AttributeSpec& spec : op_info(op).attributes) {
    if (spec.name != key) continue;
    return Term{kind_of(spec.kind), spec.choices, spec.kind == AttributeKind::integers ? spec.length : std::size_t{0},
                [name = spec.name, kind = spec.kind](const Problem& problem, const P&) {
                  return attribute(problem.attributes, name, kind);
                }};
  }
  return std::nullopt;
}

// ---- inputs and outputs ----

/// A small number as people write it: no sign, no leading zero.
std::optional<std::int64_t> small_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || std::to_string(number) != text) return std::nullopt;
  return number < 64 ? std::optional(number) : std::nullopt;
}

struct TensorTerm {
  std::string_view name = {};
  TermKind kind = TermKind::integer;
  Fact (*read)(const TensorSpec& spec) = nullptr;
  std::string_view summary = {};
};

Fact list_of(const Dims& dims) { return std::vector<std::int64_t>(dims.begin(), dims.end()); }

constexpr TensorTerm tensor_terms[] = {
    {"dtype", TermKind::dtype, [](const TensorSpec& spec) -> Fact { return std::string(to_string(spec.dtype)); },
     "its dtype"},
    {"rank", TermKind::integer,
     [](const TensorSpec& spec) -> Fact { return static_cast<std::int64_t>(spec.shape.size()); },
     "how many extents it has"},
    {"shape", TermKind::integers, [](const TensorSpec& spec) { return list_of(spec.shape); }, "its extents"},
    {"strides", TermKind::integers, [](const TensorSpec& spec) { return list_of(spec.strides); },
     "its strides in elements"},
    {"elements", TermKind::integer, [](const TensorSpec& spec) -> Fact { return element_count(spec); }, "its elements"},
    {"contiguous", TermKind::boolean, [](const TensorSpec& spec) -> Fact { return spec.contiguous; },
     "row-major without gaps"},
    {"alignment", TermKind::integer, [](const TensorSpec& spec) -> Fact { return std::int64_t{spec.alignment}; },
     "bytes the first element is aligned to: 1 to 16"},
};

std::optional<Term> find_tensor(OpId op, std::string_view key) {
  const bool input = key.starts_with("inputs.");
  if (!input && !key.starts_with("outputs.")) return std::nullopt;
  key.remove_prefix(input ? 7 : 8);
  const std::size_t dot = key.find('.');
  const auto number = small_number(key.substr(0, dot));
  if (dot == key.npos || !number || *number < 0) return std::nullopt;
  // Backward takes one more: the gradient.
  if (input && *number > op_info(op).max_inputs) return std::nullopt;
  for (const TensorTerm& term : tensor_terms) {
    if (term.name != key.substr(dot + 1)) continue;
    return Term{term.kind,
                {},
                0,
                [input, i = static_cast<std::size_t>(*number), read = term.read](const Problem& problem, const P&) {
                  const auto& specs = input ? problem.inputs : problem.outputs;
                  return i < specs.size() ? read(specs[i]) : Fact{};
                }};
  }
  return std::nullopt;
}

std::optional<Term> find_whole(OpId op, std::string_view key) {
  if (auto term = find_plain(key)) return term;
  if (auto term = find_size(op, key)) return term;
  if (auto term = find_tensor(op, key)) return term;
  return find_attribute(op, key);
}

/// `shape.0`, `shape.-1`: one element of a list, counted from its end where negative.
std::optional<Term> find_element(OpId op, std::string_view key) {
  const std::size_t dot = key.rfind('.');
  if (dot == key.npos) return std::nullopt;
  const auto index = small_number(key.substr(dot + 1));
  const auto list = find_whole(op, key.substr(0, dot));
  if (!index || !list || list->kind != TermKind::integers) return std::nullopt;
  const auto most = static_cast<std::int64_t>(list->length == 0 ? max_rank : list->length);
  if (*index >= most || *index < -most) return std::nullopt;
  return Term{TermKind::integer, {}, 0, [read = list->read, index = *index](const Problem& problem, const P& profile) {
                const Fact fact = read(problem, profile);
                const auto* values = std::get_if<std::vector<std::int64_t>>(&fact);
                if (values == nullptr) return Fact{};
                const auto size = static_cast<std::int64_t>(values->size());
                const std::int64_t at = index < 0 ? index + size : index;
                return at < 0 || at >= size ? Fact{} : Fact{(*values)[static_cast<std::size_t>(at)]};
              }};
}

std::string with_index(std::string_view name) { return std::string(name) + ".K"; }

void add_key(std::vector<RuleKey>& keys, const std::string& name, TermKind kind, std::string_view summary) {
  keys.push_back({name, key_kind(kind), std::string(summary)});
  if (kind == TermKind::integers) keys.push_back({with_index(name), RuleKeyKind::integer, "element K; -1 is the last"});
}

}  // namespace

RuleKeyKind key_kind(TermKind kind) {
  constexpr RuleKeyKind kinds[] = {RuleKeyKind::boolean, RuleKeyKind::integer,  RuleKeyKind::real,
                                   RuleKeyKind::text,    RuleKeyKind::text,     RuleKeyKind::text,
                                   RuleKeyKind::text,    RuleKeyKind::integers, RuleKeyKind::texts};
  return kinds[static_cast<std::size_t>(kind)];
}

std::string_view to_string(RuleKeyKind kind) {
  constexpr std::string_view names[] = {"boolean", "integer", "real", "text", "integers", "texts"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Term> find_term(OpId op, std::string_view key) {
  if (auto term = find_whole(op, key)) return term;
  return find_element(op, key);
}

Term parse_term(OpId op, std::string_view key) {
  if (auto term = find_term(op, key)) return *term;
  std::vector<RuleKey> keys = rule_keys(op);
  std::vector<std::string_view> known;
  for (const RuleKey& candidate : keys) known.push_back(candidate.name);
  fail_unknown("PolicyRule", "key for rules of " + std::string(to_string(op)), key, known);
}

std::vector<std::string> words_of(const Term& term) {
  std::vector<std::string> words;
  if (term.kind == TermKind::dtype) {
    for (int i = 0; i < data_type_count; ++i) words.emplace_back(to_string(static_cast<DataType>(i)));
  } else if (term.kind == TermKind::device_type) {
    for (const DeviceType type : device_types()) words.emplace_back(to_string(type));
  } else if (term.kind == TermKind::choice) {
    for_each_part(term.choices, [&](std::string_view word) {
      words.emplace_back(word);
      return true;
    });
  }
  return words;
}

std::vector<RuleKey> rule_keys(OpId op) {
  std::vector<RuleKey> keys;
  for (const SizeSpec& spec : op_info(op).sizes)
    add_key(keys, std::string(spec.name), kind_of(spec.kind), spec.summary);
  for (const AttributeSpec& spec : op_info(op).attributes) {
    // A name that all calls have keeps its meaning; the attribute then goes by its long name.
    const bool taken = find_plain(spec.name) || find_size(op, spec.name);
    add_key(keys, (taken ? "attributes." : "") + std::string(spec.name), kind_of(spec.kind), "attribute of the op");
  }
  for (const char* tensors : {"inputs.N.", "outputs.N."}) {
    for (const TensorTerm& term : tensor_terms)
      add_key(keys, tensors + std::string(term.name), term.kind, term.summary);
  }
  for (const PlainTerm& term : plain_terms()) add_key(keys, std::string(term.name), term.kind, term.summary);
  keys.push_back({"device.library_versions.NAME", RuleKeyKind::text, "of a library, such as cublasLt"});
  return keys;
}

}  // namespace xpuruntime
