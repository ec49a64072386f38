#include <algorithm>
#include <map>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Einsum as products of matrices: two operands at a time, with what both keep as the batch.

namespace xpuruntime::native {
namespace {

/// A tensor with a letter for each dim. The dims of "..." have the digits from the last, which is '0'.
struct Term {
  int slot = -1;
  std::string letters = {};

  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
};

std::string spelled(const NodeCall& call, std::string letters, std::size_t hidden_dims) {
  const std::size_t dots = letters.find("...");
  if (dots == std::string::npos) return letters;
  std::string hidden;
  for (std::size_t i = hidden_dims; i-- > 0;) hidden += static_cast<char>('0' + i);
  letters.replace(dots, 3, hidden);
  if (letters.find('.') != std::string::npos) call.refuse("an equation with two ellipses in a term");
  return letters;
}

int permuted_to(const Calls& calls, const Term& term, const std::string& letters) {
  std::vector<std::int64_t> dims;
  for (const char letter : letters) dims.push_back(static_cast<std::int64_t>(term.letters.find(letter)));
  return calls.permuted(term.slot, dims);
}

/// A letter that stands twice is a diagonal: every so-many-th of the two dims as one.
void take_diagonals(const NodeCall& call, Term& term) {
  const Calls calls{call.builder};
  for (std::size_t i = 0; i < term.letters.size(); ++i) {
    const std::size_t again = term.letters.find(term.letters[i], i + 1);
    if (again == std::string::npos) continue;
    std::vector<std::int64_t> dims;
    std::string letters;
    for (std::size_t d = 0; d < term.letters.size(); ++d) {
      if (d == i || d == again) continue;
      dims.push_back(static_cast<std::int64_t>(d));
      letters += term.letters[d];
    }
    dims.insert(dims.end(), {static_cast<std::int64_t>(i), static_cast<std::int64_t>(again)});
    const Dims shape = call.builder.shape(term.slot);
    const std::int64_t extent = shape[i];
    if (shape[again] != extent) call.refuse("a diagonal of different extents");
    std::vector<std::int64_t> flat;
    for (std::size_t d = 0; d + 2 < dims.size(); ++d) flat.push_back(shape[static_cast<std::size_t>(dims[d])]);
    flat.push_back(extent * extent);
    const int turned = call.builder.reshaped(calls.permuted(term.slot, dims), Dims(std::span(flat)));
    const auto last = static_cast<std::int64_t>(flat.size()) - 1;
    term = {calls.slice(turned, last, 0, extent * extent, extent + 1), letters + term.letters[i]};
    i = static_cast<std::size_t>(-1);  // from the front again
  }
}

/// Adds up the dims that nothing else names.
void sum_out(const Calls& calls, Term& term, const std::string& needed) {
  std::vector<std::int64_t> gone;
  std::string left;
  for (std::size_t d = 0; d < term.letters.size(); ++d) {
    if (needed.find(term.letters[d]) == std::string::npos) {
      gone.push_back(static_cast<std::int64_t>(d));
    } else {
      left += term.letters[d];
    }
  }
  if (gone.empty()) return;
  const DataType dtype = calls.builder.spec(term.slot).dtype;
  term = {calls.cast(calls.reduce(OpId::reduce_sum, term.slot, gone, false), dtype), left};
}

using Extents = std::map<char, std::int64_t>;

/// Extents of 1 stand for any in the dims of "...".
void widen(Builder& builder, Term& term, const Extents& extents) {
  Dims shape = builder.shape(term.slot);
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = extents.at(term.letters[d]);
  term.slot = builder.broadcast(term.slot, shape);
}

Dims extents_of(const Extents& extents, std::initializer_list<std::string> groups, bool joined) {
  std::vector<std::int64_t> shape;
  for (const std::string& group : groups) {
    if (joined) shape.push_back(1);
    for (const char letter : group) {
      if (joined) {
        shape.back() *= extents.at(letter);
      } else {
        shape.push_back(extents.at(letter));
      }
    }
  }
  return Dims(std::span(shape));
}

/// The letters of both, of either alone, and those that are summed up.
Term product(const NodeCall& call, Term a, Term b, const std::string& needed, const Extents& extents) {
  const Calls calls{call.builder};
  sum_out(calls, a, needed + b.letters);
  sum_out(calls, b, needed + a.letters);
  widen(call.builder, a, extents);
  widen(call.builder, b, extents);
  std::string batch, rows, columns, summed;
  for (const char letter : a.letters) {
    (b.has(letter) ? (needed.find(letter) == std::string::npos ? summed : batch) : rows) += letter;
  }
  for (const char letter : b.letters) {
    if (!a.has(letter)) columns += letter;
  }
  Builder& builder = call.builder;
  const std::string letters = batch + rows + columns;
  if (letters.size() > max_rank) call.lacks("more than 8 dims on the way");
  const int left =
      builder.reshaped(permuted_to(calls, a, batch + rows + summed), extents_of(extents, {batch, rows, summed}, true));
  const int right = builder.reshaped(permuted_to(calls, b, batch + summed + columns),
                                     extents_of(extents, {batch, summed, columns}, true));
  // A sum of one term needs no product of matrices, which has no kernels for some types.
  const int made = summed.empty() ? calls.mul(left, right) : builder.call(OpId::matmul, {left, right});
  return {builder.reshaped(made, extents_of(extents, {letters}, false)), letters};
}

/// "ij,jk->ik" in parts: the inputs and the output, which is all letters that stand once where it is not given.
std::pair<std::vector<std::string>, std::string> parts_of(const NodeCall& call) {
  std::string text = call.text("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  std::string inputs = text.substr(0, arrow);
  for (const char c : inputs) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && c != ',' && c != '.') call.refuse("the equation '" + text.substr(0, 64) + "'");
  }
  std::vector<std::string> terms = {""};
  for (const char c : inputs) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (arrow != std::string::npos) return {terms, text.substr(arrow + 2)};
  std::string once = inputs.find('.') == std::string::npos ? "" : "...";
  std::string sorted = inputs;
  std::sort(sorted.begin(), sorted.end());
  for (const char c : sorted) {
    if (c != ',' && c != '.' && std::count(sorted.begin(), sorted.end(), c) == 1) once += c;
  }
  return {terms, once};
}

Slots einsum(const NodeCall& call) {
  auto [inputs, output] = parts_of(call);
  if (inputs.size() != call.size()) call.refuse("an equation for another number of inputs");
  std::vector<Term> terms;
  Extents extents;
  std::size_t most_hidden = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t rank = call.shape(i).size(), dots = inputs[i].find("...");
    const std::size_t named = inputs[i].size() - (dots == std::string::npos ? 0 : 3);
    if (named > rank || (dots == std::string::npos && named != rank))
      call.refuse("a term with other dims than its input");
    most_hidden = std::max(most_hidden, rank - named);
    terms.push_back({call[i], spelled(call, inputs[i], rank - named)});
    for (std::size_t d = 0; d < rank; ++d) {
      std::int64_t& extent = extents.try_emplace(terms[i].letters[d], 1).first->second;
      const std::int64_t given = call.shape(i)[d];
      if (given != 1 && extent != 1 && extent != given) call.refuse("two extents for one letter");
      if (given != 1) extent = given;
    }
  }
  output = spelled(call, output, most_hidden);
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!extents.contains(output[i]) || output.find(output[i], i + 1) != std::string::npos) {
      call.refuse("an output with a letter that no input has, or has twice");
    }
  }
  for (Term& term : terms) take_diagonals(call, term);
  Term result = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string needed = output;
    for (std::size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].letters;
    result = product(call, result, terms[i], needed, extents);
  }
  const Calls calls{call.builder};
  sum_out(calls, result, output);
  return {permuted_to(calls, result, output)};
}

constexpr Operator einsum_rows[] = {{"Einsum", einsum}};

}  // namespace

std::span<const Operator> einsum_operators() { return einsum_rows; }

}  // namespace xpuruntime::native
