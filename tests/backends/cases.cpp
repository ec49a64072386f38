#include "backends/cases.h"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace xpuruntime::cases {

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(what);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + what.size());
  }
}

void List::each(Words dtypes, Words texts, oracle::Fill fill) {
  for (const std::string_view text : texts) {
    for (const std::string_view dtype : dtypes) add(replaced(text, "T", dtype), fill);
  }
}

void List::each_op(Words ops, Words dtypes, Words texts, oracle::Fill fill) {
  for (const std::string_view op : ops) {
    for (const std::string_view text : texts) {
      for (const std::string_view dtype : dtypes) add(replaced(replaced(text, "OP", op), "T", dtype), fill);
    }
  }
}

const std::vector<CaseText>& all() {
  static const std::vector<CaseText> list = [] {
    std::vector<CaseText> out;
    for (const auto family : {matrix_cases, conv_cases, pool_cases, attention_cases, norm_cases, reduce_cases,
                              loss_cases, elementwise_cases, movement_cases, indexing_cases, arranging_cases,
                              decoder_cases, quantization_cases, pointwise_cases}) {
      const std::vector<CaseText> part = family();
      out.insert(out.end(), part.begin(), part.end());
    }
    const std::vector<CaseText> backward = backward_cases(out);
    out.insert(out.end(), backward.begin(), backward.end());
    return out;
  }();
  return list;
}

// A list goes through the four dtypes fastest: an odd step meets all of them. The first case of each op is always run.
const std::vector<CaseText>& to_run() {
  static const std::vector<CaseText> list = [] {
    const char* const reduced = std::getenv("XRT_TEST_REDUCED");
    const std::size_t step = reduced == nullptr ? 1 : std::max(1ul, std::strtoul(reduced, nullptr, 10));
    std::vector<CaseText> out;
    std::set<std::string> ops;
    for (std::size_t i = 0; i < all().size(); ++i) {
      const std::string& problem = all()[i].problem;
      const bool is_first = ops.insert(problem.substr(0, problem.find_first_of("(:"))).second;
      if (is_first || i % step == 0) out.push_back(all()[i]);
    }
    return out;
  }();
  return list;
}

const Checks& checks() {
  static const Checks all = [] {
    Checks out;
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const auto family :
         {matrix_checks, conv_checks, attention_checks, norm_checks, reduce_checks, loss_checks, elementwise_checks,
          movement_checks, indexing_checks, arranging_checks, decoder_checks, quantization_checks, pointwise_checks}) {
      const Checks part = family();
      append(out.small, part.small);
      append(out.by_lines, part.by_lines);
      append(out.gradients, part.gradients);
      append(out.mistakes, part.mistakes);
      append(out.gradient_mistakes, part.gradient_mistakes);
    }
    return out;
  }();
  return all;
}

}  // namespace xpuruntime::cases
