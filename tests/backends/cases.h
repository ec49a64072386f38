#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/oracle.h"

// The problems that every kernel is tried on, as problem texts, a file for each family of ops.

namespace xpuruntime::cases {

struct CaseText {
  std::string problem;
  oracle::Fill fill = oracle::Fill::usual;
};

/// Texts with `T` where a dtype goes, and `OP` where an op goes.
class List {
 public:
  using Words = std::initializer_list<std::string_view>;

  void add(std::string text, oracle::Fill fill = oracle::Fill::usual) { cases_.push_back({std::move(text), fill}); }
  /// Every text with every dtype.
  void each(Words dtypes, Words texts, oracle::Fill fill = oracle::Fill::usual);
  /// Every text with every op and dtype.
  void each_op(Words ops, Words dtypes, Words texts, oracle::Fill fill = oracle::Fill::usual);

  std::vector<CaseText> take() { return std::move(cases_); }

 private:
  std::vector<CaseText> cases_;
};

/// `text` with every `what` replaced.
std::string replaced(std::string_view text, std::string_view what, std::string_view by);

std::vector<CaseText> matrix_cases();
std::vector<CaseText> conv_cases();
std::vector<CaseText> pool_cases();
std::vector<CaseText> attention_cases();
std::vector<CaseText> norm_cases();
std::vector<CaseText> reduce_cases();
std::vector<CaseText> loss_cases();
std::vector<CaseText> elementwise_cases();
std::vector<CaseText> movement_cases();
/// Of the forward cases, those whose ops have gradients, and more.
std::vector<CaseText> backward_cases(const std::vector<CaseText>& forward);

/// A problem, and one with another answer that takes the same inputs.
struct Mistake {
  const char* right = nullptr;
  const char* wrong = nullptr;
};
std::span<const Mistake> mistakes();
std::span<const Mistake> gradient_mistakes();
/// Small ones, where every rounding shows, and some that sum up much; `T` stands for a dtype.
std::span<const std::string_view> small_problems();
/// In f64, for gradients that are compared with differences.
std::span<const char* const> gradient_problems();
/// Those in which a line of the result depends on one line of the input.
std::span<const char* const> problems_by_lines();

/// All of them.
const std::vector<CaseText>& all();
/// All of them, or with XRT_TEST_REDUCED=3 every third: for builds that run slowly.
const std::vector<CaseText>& to_run();

}  // namespace xpuruntime::cases
