#include "xpuruntime/core/problem_range.h"

#include <algorithm>

#include "core/forward_call.h"
#include "core/problem_parser.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "parse_problem_range";
constexpr std::size_t most_problems = std::size_t{1} << 20;  // each is asked about when a range is tuned

/// Where `where` stands; npos: nowhere. The last one: an op may have that name.
std::size_t find_where(std::string_view text) {
  constexpr std::string_view word = "where";
  const std::size_t at = text.rfind(word);
  if (at == text.npos || at == 0) return text.npos;
  const bool apart = is_space(text[at - 1]) || text[at - 1] == ')';
  const std::size_t end = at + word.size();
  return apart && (end == text.size() || is_space(text[end])) ? at : text.npos;
}

std::size_t count_of(const SizeRange& range) { return static_cast<std::size_t>(range.high - range.low) + 1; }

/// How many problems these are; nothing where that is more than a range may hold.
std::optional<std::size_t> product_of(std::span<const SizeRange> names) {
  std::size_t product = 1;
  for (const SizeRange& range : names) {
    const auto further = static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low);
    if (further >= most_problems || product * (further + 1) > most_problems) return std::nullopt;
    product *= further + 1;
  }
  return product;
}

Dims dims_at(const std::vector<RangedExtent>& extents, std::span<const std::int64_t> sizes) {
  std::int64_t values[max_rank] = {};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const int name = extents[i].name;
    values[i] = name < 0 ? extents[i].value : extents[i].value * sizes[static_cast<std::size_t>(name)];
  }
  return Dims(std::span<const std::int64_t>(values, extents.size()));
}

std::vector<TensorSpec> specs_at(const std::vector<RangedSpec>& ranged, std::span<const std::int64_t> sizes) {
  std::vector<TensorSpec> specs;
  for (const RangedSpec& spec : ranged) {
    const Dims shape = dims_at(spec.shape, sizes);
    const TensorSpec plain = make_spec(spec.dtype, shape);
    const Dims strides = spec.strides.empty() ? plain.strides : dims_at(spec.strides, sizes);
    specs.push_back(make_spec(spec.dtype, shape, strides, spec.alignment));
  }
  return specs;
}

bool is_used(const std::vector<RangedSpec>& specs, int name) {
  return std::any_of(specs.begin(), specs.end(), [&](const RangedSpec& spec) {
    return std::any_of(spec.shape.begin(), spec.shape.end(), [&](const RangedExtent& e) { return e.name == name; });
  });
}

std::string extents_text(const std::vector<RangedExtent>& extents, std::span<const SizeRange> names) {
  std::string text;
  for (const RangedExtent& extent : extents) {
    if (!text.empty()) text += ",";
    if (extent.name < 0 || extent.value != 1) text += std::to_string(extent.value);
    if (extent.name >= 0) text += names[static_cast<std::size_t>(extent.name)].name;
  }
  return text;
}

std::string specs_text(const std::vector<RangedSpec>& specs, std::span<const SizeRange> names,
                       const OpInfo* inputs_of = nullptr) {
  std::string text;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const RangedSpec& spec = specs[i];
    if (!text.empty()) text += ", ";
    if (inputs_of != nullptr && may_be_none(*inputs_of, i) && spec == ranged_none()) {
      text += "none";
      continue;
    }
    text += std::string(to_string(spec.dtype)) + "[" + extents_text(spec.shape, names) + "]";
    if (!spec.strides.empty()) text += "{" + extents_text(spec.strides, names) + "}";
    if (spec.alignment < 16) text += "/" + std::to_string(spec.alignment);
  }
  return text;
}

/// Fails at the place of what is wrong with the ranges as such.
void check_clauses(const ProblemParser& parser, const NamedSizes& named, std::size_t where) {
  std::vector<SizeRange> names;
  for (std::size_t i = 0; i < named.names.size(); ++i) {
    names.push_back(named.names[i].range);
    if (is_used(named.inputs, static_cast<int>(i))) continue;
    parser.refuse(named.names[i].column, ErrorCode::invalid_argument,
                  names.back().name + " is not an extent of an input; write it into a shape, or leave it out");
  }
  if (product_of(names)) return;
  parser.refuse(where, ErrorCode::invalid_argument,
                "the ranges hold more than " + std::to_string(most_problems) + " problems; narrow them");
}

/// Strides that say nothing are left out; of an extent of 1, which addresses nothing, they follow from the others, as
/// in make_spec.
void unify_strides(RangedSpec& spec, const std::vector<RangeClause>& names) {
  RangedExtent next{1};  // what a contiguous tensor would have here; 0 where that cannot be written
  bool contiguous = true;
  for (std::size_t i = spec.strides.size(); i-- > 0;) {
    const RangedExtent extent = spec.shape[i];
    if (extent == RangedExtent{1}) {
      spec.strides[i] = next;
      continue;
    }
    RangedExtent& stride = spec.strides[i];
    contiguous = contiguous && next.value != 0 && stride == next;
    next = {0, std::max(stride.name, extent.name)};
    const std::int64_t most = next.name < 0 ? 1 : names[static_cast<std::size_t>(next.name)].range.high;
    std::int64_t largest = 0;
    const bool two_names = stride.name >= 0 && extent.name >= 0;
    if (two_names || __builtin_mul_overflow(stride.value, extent.value, &next.value) ||
        __builtin_mul_overflow(next.value, most, &largest) || next.value == 0) {
      next = {};
    }
  }
  const bool empty = std::find(spec.shape.begin(), spec.shape.end(), RangedExtent{0}) != spec.shape.end();
  if (contiguous || empty) spec.strides.clear();
}

/// One way to write the same: names in the order of their first use, and no strides that say nothing.
void unify(NamedSizes& named) {
  std::vector<int> places(named.names.size(), -1);
  std::vector<RangeClause> ordered;
  for (const RangedSpec& spec : named.inputs) {
    for (const RangedExtent& extent : spec.shape) {
      if (extent.name < 0 || places[static_cast<std::size_t>(extent.name)] >= 0) continue;
      places[static_cast<std::size_t>(extent.name)] = static_cast<int>(ordered.size());
      ordered.push_back(named.names[static_cast<std::size_t>(extent.name)]);
    }
  }
  named.names = std::move(ordered);
  for (auto* specs : {&named.inputs, &named.outputs}) {
    for (RangedSpec& spec : *specs) {
      for (auto* extents : {&spec.shape, &spec.strides}) {
        for (RangedExtent& extent : *extents) {
          if (extent.name >= 0) extent.name = places[static_cast<std::size_t>(extent.name)];
        }
      }
      unify_strides(spec, named.names);
    }
  }
}

}  // namespace

bool has_ranges(std::string_view text) { return find_where(text) != text.npos; }

Problem least_problem(std::string_view text) {
  return has_ranges(text) ? parse_problem_range(text).least() : parse_problem(text);
}

ProblemRange parse_problem_range(std::string_view text, Device device) {
  const std::size_t where = find_where(text);
  NamedSizes named;
  const ProblemParser clauses(text, function);
  if (where != text.npos) named.names = ProblemParser(text, function).ranges(where + 5);
  for (const RangeClause& clause : named.names) named.values.push_back(clause.range.low);
  ProblemRange range;
  const std::string_view head = text.substr(0, where);
  range.least_ = ProblemParser(head, function, &named).problem(device);
  if (where == text.npos) {
    clauses.refuse(text.size(), ErrorCode::invalid_argument, "there are no ranges; add them, like 'where m=1..512'");
  }
  check_clauses(clauses, named, where);
  unify(named);
  for (const RangeClause& clause : named.names) range.names_.push_back(clause.range);
  range.inputs_ = named.inputs;
  range.outputs_ = named.outputs;
  // Where sizes must fit others, the ends may fit by chance: 1 is broadcast, and the largest may be the other's.
  for (const std::int64_t step : {std::int64_t{1}, INT64_MAX}) {
    NamedSizes other = {named.names, {}, {}, {}};
    for (const SizeRange& name : range.names_) {
      other.values.push_back(step > name.high - name.low ? name.high : name.low + step);
    }
    try {
      ProblemParser(head, function, &other).problem(device);
    } catch (const Error& error) {
      fail(error.code(), function, std::string(error.message()) + ", which is at " + sizes_text(range, other.values));
    }
  }
  return range;
}

std::size_t ProblemRange::count() const { return product_of(names_).value_or(0); }

std::vector<std::int64_t> ProblemRange::sizes_at(std::size_t index) const {
  std::vector<std::int64_t> sizes(names_.size());
  for (std::size_t i = names_.size(); i-- > 0;) {
    sizes[i] = names_[i].low + static_cast<std::int64_t>(index % count_of(names_[i]));
    index /= count_of(names_[i]);
  }
  return sizes;
}

Problem ProblemRange::made(std::span<const std::int64_t> sizes) const {
  Problem problem =
      make_problem(least_.op, specs_at(inputs_, sizes), least_.attributes, least_.device, least_.direction);
  if (!outputs_.empty()) set_outputs(problem, specs_at(outputs_, sizes));
  problem.limits = least_.limits;
  return problem;
}

Problem ProblemRange::at(std::span<const std::int64_t> sizes) const {
  if (sizes.size() != names_.size()) {
    fail(ErrorCode::invalid_argument, "ProblemRange::at",
         std::to_string(sizes.size()) + " sizes were given for " + std::to_string(names_.size()) +
             " names; pass one for each");
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= names_[i].low && sizes[i] <= names_[i].high) continue;
    fail(ErrorCode::invalid_argument, "ProblemRange::at",
         names_[i].name + "=" + std::to_string(sizes[i]) + " is outside of " + to_string(*this) +
             "; pass a size inside, or make the range wider");
  }
  try {
    return made(sizes);
  } catch (const Error& error) {
    fail(error.code(), "ProblemRange::at", sizes_text(*this, sizes) + ": " + std::string(error.message()));
  }
}

std::optional<std::vector<std::int64_t>> ProblemRange::sizes_of(const Problem& problem) const {
  if (problem.op != least_.op || problem.direction != least_.direction || problem.inputs.size() != inputs_.size()) {
    return std::nullopt;
  }
  std::vector<std::int64_t> sizes(names_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Dims& shape = problem.inputs[i].shape;
    if (shape.size() != inputs_[i].shape.size()) return std::nullopt;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      const RangedExtent& extent = inputs_[i].shape[k];
      if (extent.name >= 0) sizes[static_cast<std::size_t>(extent.name)] = shape[k];
      if (extent.name < 0 && extent.value != shape[k]) return std::nullopt;
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < names_[i].low || sizes[i] > names_[i].high) return std::nullopt;
  }
  return sizes;
}

std::optional<Problem> ProblemRange::nearest(const Problem& problem) const {
  std::vector<std::int64_t> sizes;
  for (const SizeRange& name : names_) sizes.push_back(name.low);
  for (std::size_t i = 0; i < std::min(inputs_.size(), problem.inputs.size()); ++i) {
    const Dims& shape = problem.inputs[i].shape;
    for (std::size_t k = 0; k < inputs_[i].shape.size() && shape.size() == inputs_[i].shape.size(); ++k) {
      const int name = inputs_[i].shape[k].name;
      if (name < 0) continue;
      const SizeRange& range = names_[static_cast<std::size_t>(name)];
      sizes[static_cast<std::size_t>(name)] = std::clamp(shape[k], range.low, range.high);
    }
  }
  try {
    return made(sizes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool ProblemRange::contains(const Problem& problem) const {
  const auto sizes = sizes_of(problem);
  if (!sizes) return false;
  try {
    return made(*sizes) == problem;
  } catch (const Error&) {
    return false;
  }
}

bool ProblemRange::contains(const ProblemRange& other) const {
  if (other.names_.size() != names_.size()) return false;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (other.names_[i].low < names_[i].low || other.names_[i].high > names_[i].high) return false;
  }
  ProblemRange same = other;
  same.names_ = names_;
  same.least_ = least_;
  return same == *this && contains(other.least_);
}

ProblemRange ProblemRange::with_names(std::vector<SizeRange> names) const {
  ProblemRange part = *this;
  part.names_ = std::move(names);
  if (part.names_.size() != names_.size() || !product_of(part.names_)) {
    fail(ErrorCode::invalid_argument, "ProblemRange::with_names", "other names than the range has; pass one for each");
  }
  part.least_ = part.at(0);
  return part;
}

ProblemRange ProblemRange::with_limits(const Limits& limits) const {
  ProblemRange limited = *this;
  limited.least_.limits = limits;
  return limited;
}

ProblemRange ProblemRange::with_dtypes_of(const Problem& problem) const {
  ProblemRange cast = *this;
  for (std::size_t i = 0; i < std::min(problem.inputs.size(), inputs_.size()); ++i) {
    cast.inputs_[i].dtype = problem.inputs[i].dtype;
  }
  for (std::size_t i = 0; i < std::min(problem.outputs.size(), outputs_.size()); ++i) {
    cast.outputs_[i].dtype = problem.outputs[i].dtype;
  }
  cast.least_ = cast.at(0);
  return cast;
}

std::string to_string(const ProblemRange& range) {
  const Problem& least = range.least_;
  std::string text(to_string(least.op));
  if (least.direction == Direction::backward) text += ":backward";
  text += "(" + specs_text(range.inputs_, range.names_, &op_info(least.op));
  const std::string attributes = least.attributes.to_string();
  if (!attributes.empty()) text += "; " + attributes;
  text += ")";
  if (!range.outputs_.empty()) text += " -> " + specs_text(range.outputs_, range.names_);
  text += " @" + to_string(least.device) + limits_text(least.limits) + " where ";
  for (std::size_t i = 0; i < range.names_.size(); ++i) {
    const SizeRange& name = range.names_[i];
    text += (i == 0 ? "" : ", ") + name.name + "=" + std::to_string(name.low) + ".." + std::to_string(name.high);
  }
  return text;
}

std::string sizes_text(const ProblemRange& range, std::span<const std::int64_t> sizes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(sizes.size(), range.names().size()); ++i) {
    text += (i == 0 ? "" : ", ") + range.names()[i].name + "=" + std::to_string(sizes[i]);
  }
  return text;
}

}  // namespace xpuruntime
