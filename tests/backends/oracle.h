#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/oracle_data.h"
#include "backends/oracle_references.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::oracle {

/// What the inputs hold beside the usual random values.
enum class Fill { usual, special };  // special: NaN, infinities, zeros and huge values in between

/// What came back from a run.
struct Result {
  std::string kernel;
  std::vector<Values> values;  // of each output
  bool strayed = false;        // something between the elements of an output was written
};

/// A problem with random inputs and its answer in float64, by loops written for this test alone.
class Case {
 public:
  Case(Problem problem, std::uint64_t seed, Fill fill = Fill::usual);

  /// Uploads, runs, calls `after_launch` before waiting, downloads. The outputs are poisoned first.
  Result through(Runtime& runtime, const std::function<void()>& after_launch = {}) const;
  /// The same with outputs in the memory of inputs, where inputs_to_overwrite says so.
  Result in_place(Runtime& runtime) const;

  /// Empty if all is within the bound, else the first difference and the bound.
  std::string compare(const Result& result) const;

  const Problem& problem() const { return problem_; }
  const std::vector<Values>& inputs() const { return inputs_; }
  /// The inputs as they lie in memory.
  const std::vector<std::vector<std::byte>>& input_bytes() const { return input_bytes_; }
  const std::vector<Answer>& answers() const { return answers_; }

 private:
  Result run(Runtime& runtime, bool in_place, const std::function<void()>& after_launch) const;

  Problem problem_;
  std::vector<Values> inputs_;  // exactly the values the tensors hold
  std::vector<std::vector<std::byte>> input_bytes_;
  std::vector<Answer> answers_;
};

/// The tensors as a call takes them.
std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors);

/// For each output an input that it may be written over: the op's row allows it and they are laid out alike.
std::vector<std::optional<std::size_t>> inputs_to_overwrite(const Problem& problem);

/// Random inputs that make sense for the op: valid indices, positive variances, logarithms of probabilities.
std::vector<Values> make_inputs(const Problem& problem, std::uint64_t seed, Fill fill);

/// Empty if the values are within the bound of one output, else the first that is not.
std::string compare_output(const Problem& problem, std::size_t output, const Answer& answer, const Values& values,
                           const std::string& kernel);

/// The case of a problem text, its seed being the text. The last one is kept: kernels of one op take turns on it.
std::shared_ptr<const Case> case_of(const std::string& text, Device device, Fill fill = Fill::usual);

}  // namespace xpuruntime::oracle
