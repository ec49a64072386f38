#pragma once

#include <initializer_list>
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
std::vector<CaseText> indexing_cases();
std::vector<CaseText> arranging_cases();
std::vector<CaseText> decoder_cases();
std::vector<CaseText> quantization_cases();
std::vector<CaseText> pointwise_cases();
/// Of the forward cases, those whose ops have gradients, and more.
std::vector<CaseText> backward_cases(const std::vector<CaseText>& forward);

/// A problem, and one with another answer that takes the same inputs.
struct Mistake {
  const char* right = nullptr;
  const char* wrong = nullptr;
};

/// What the checks themselves are tried on: that of the oracle, and that of a race.
struct Checks {
  std::vector<const char*> small = {};      // every rounding shows, or much is summed up; `T` stands for a dtype
  std::vector<const char*> by_lines = {};   // a line of the result depends on one line of the input
  std::vector<const char*> gradients = {};  // in f64, to be compared with differences
  std::vector<Mistake> mistakes = {};
  std::vector<Mistake> gradient_mistakes = {};
};
Checks matrix_checks();
Checks conv_checks();
Checks attention_checks();
Checks norm_checks();
Checks reduce_checks();
Checks loss_checks();
Checks elementwise_checks();
Checks movement_checks();
Checks indexing_checks();
Checks arranging_checks();
Checks decoder_checks();
Checks quantization_checks();
Checks pointwise_checks();
/// Those of all families.
const Checks& checks();

/// All of them.
const std::vector<CaseText>& all();
/// All of them, or with XRT_TEST_REDUCED=3 every third: for builds that run slowly.
const std::vector<CaseText>& to_run();

}  // namespace xpuruntime::cases
