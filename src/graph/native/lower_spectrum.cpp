#include <cmath>
#include <functional>
#include <numbers>

#include "graph/native/calls.h"
#include "graph/native/known.h"
#include "graph/onnx/element_type.h"

// Fourier transforms as products with a matrix of waves, and the windows and filters that go with them.

namespace xpuruntime::native {
namespace {

constexpr std::int64_t most_waves = 1 << 24;  // of a matrix of waves or a window

/// How many samples go in and how many come out, of what wave.
struct Transform {
  std::int64_t samples, parts;  // that go in, and whether they are complex: 1 or 2
  std::int64_t length;          // of the wave
  bool inverse = false, onesided = false;

  bool is_real() const { return inverse && onesided; }  // what comes out
  std::int64_t results() const { return onesided && !inverse ? length / 2 + 1 : length; }
  std::int64_t result_parts() const { return is_real() ? 1 : 2; }
};

/// From [samples, parts] to [results, parts], both as one dim.
int waves(const NodeCall& call, const Transform& transform, DataType dtype) {
  const std::int64_t rows = transform.samples * transform.parts;
  const std::int64_t columns = transform.results() * transform.result_parts();
  if (transform.length < 1 || rows < 1 || transform.length > most_waves || rows > most_waves / columns) {
    call.refuse("a transform of " + std::to_string(transform.samples) + " samples to " +
                std::to_string(transform.length));
  }
  const Tensor matrix = Tensor::empty(dtype, {rows, columns});
  const auto store = storer_of(dtype);
  const double share = transform.inverse ? 1 / static_cast<double>(transform.length) : 1;
  const std::int64_t used = transform.is_real() ? transform.length / 2 + 1 : transform.length;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t sample = row / transform.parts;
    const bool is_imaginary = row % transform.parts == 1;
    // The half that is not there mirrors the half that is.
    const bool is_alone = sample == 0 || 2 * sample == transform.length;
    const double weight = sample >= used ? 0 : transform.is_real() && !is_alone ? 2 * share : share;
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t turn = sample * (column / transform.result_parts()) % transform.length;
      const double angle = 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(transform.length);
      const double real = std::cos(angle), imaginary = (transform.inverse ? 1 : -1) * std::sin(angle);
      const bool to_imaginary = column % transform.result_parts() == 1;
      const double value = is_imaginary ? (to_imaginary ? real : -imaginary) : (to_imaginary ? imaginary : real);
      store(matrix.data(), row * columns + column, weight * value);
    }
  }
  return call.builder.constant(matrix);
}

/// Of a signal [..., samples, parts].
int transformed(const NodeCall& call, int signal, const Transform& transform) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = builder.shape(signal);
  const int x = calls.widened(signal);
  const std::int64_t width = transform.samples * transform.parts;
  const std::int64_t rows = width == 0 ? 0 : element_count(builder.spec(x)) / width;
  const int matrix = waves(call, transform, builder.spec(x).dtype);
  const int product = builder.call(OpId::matmul, {builder.reshaped(x, {rows, width}), matrix});
  Dims result = shape;
  result[shape.size() - 2] = transform.results();
  result[shape.size() - 1] = transform.result_parts();
  return calls.cast(builder.reshaped(product, result), builder.spec(signal).dtype);
}

/// The axis is an attribute before opset 20.
Slots dft(const NodeCall& call) {
  const Dims shape = call.shape(0);
  if (shape.size() < 2 || shape.back() < 1 || shape.back() > 2)
    call.refuse("a signal " + to_string(shape) + "; its last dim is 1, or 2 of complex numbers");
  const std::int64_t asked = call.opset < 20 ? call.integer("axis", 1) : call.has(2) ? call.number(2) : -2;
  const std::size_t axis = call.axis(asked, shape.size()), before_last = shape.size() - 2;
  if (axis > before_last) call.refuse("the axis of the complex numbers");
  Transform transform{shape[axis], shape.back(), 0, call.integer("inverse", 0) != 0, call.integer("onesided", 0) != 0};
  if (transform.onesided && !transform.inverse && transform.parts == 2) call.lacks("one side of complex samples");
  transform.length = call.has(1)           ? call.number(1)
                     : transform.is_real() ? 2 * (transform.samples - 1)
                                           : transform.samples;
  const Calls calls{call.builder};
  std::vector<std::int64_t> turned(shape.size());
  for (std::size_t d = 0; d < turned.size(); ++d) turned[d] = static_cast<std::int64_t>(d);
  std::swap(turned[axis], turned[before_last]);
  int signal = calls.permuted(call[0], turned);
  if (transform.samples > transform.length) {
    signal =
        calls.slice(signal, static_cast<std::int64_t>(before_last), 0, std::max<std::int64_t>(transform.length, 0));
    transform.samples = transform.length;
  }
  return {calls.permuted(transformed(call, signal, transform), turned)};
}

/// Of pieces of a signal that overlap, each under a window.
Slots stft(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  Dims shape = call.shape(0);
  if (shape.size() == 2) shape = {shape[0], shape[1], 1};
  if (shape.size() != 3 || shape[2] < 1 || shape[2] > 2) call.refuse("a signal " + to_string(shape));
  const std::int64_t step = call.number(1);
  const std::int64_t length = call.has(3)   ? call.number(3)
                              : call.has(2) ? element_count(builder.spec(call[2]))
                                            : shape[1];
  if (step < 1 || length < 1 || length > shape[1])
    call.refuse("pieces of " + std::to_string(length) + " samples, " + std::to_string(step) + " apart");
  const std::int64_t pieces = (shape[1] - length) / step + 1;
  if (pieces > most_waves / length) call.refuse("pieces of more than 16 million samples");
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < pieces * length; ++i) places.push_back(i / length * step + i % length);
  int parts =
      calls.gathered(builder.reshaped(call[0], shape), 1, builder.reshaped(builder.integers(places), {pieces, length}));
  if (call.has(2)) parts = calls.mul(parts, builder.reshaped(call[2], {length, 1}));
  const Transform transform{length, shape[2], length, false, call.integer("onesided", 1) != 0 && shape[2] == 1};
  return {transformed(call, parts, transform)};
}

DataType dtype_asked(const NodeCall& call) {
  const auto dtype = onnx::element_dtype(call.integer("output_datatype", 1));
  if (!dtype) call.lacks("a type that is not one of ours");
  return *dtype;
}

/// So many numbers, each by its place.
Slots numbers(const NodeCall& call, const Dims& shape, const std::function<double(std::int64_t)>& at) {
  const Tensor host = Tensor::empty(dtype_asked(call), shape);
  for (std::int64_t i = 0; i < element_count(host.spec()); ++i) storer_of(host.dtype())(host.data(), i, at(i));
  return {call.builder.constant(host)};
}

/// constant + first cos(t) + second cos(2 t), t going once round.
Slots window(const NodeCall& call, double constant, double first, double second) {
  const std::int64_t size = call.number(0);
  if (size < 0 || size > most_waves) call.refuse("a window of " + std::to_string(size));
  const double round = static_cast<double>(call.integer("periodic", 1) != 0 || size == 1 ? size : size - 1);
  return numbers(call, {size}, [=](std::int64_t i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / round;
    return constant + first * std::cos(t) + second * std::cos(2 * t);
  });
}

Slots hann_window(const NodeCall& call) { return window(call, 0.5, -0.5, 0); }
Slots hamming_window(const NodeCall& call) { return window(call, 25.0 / 46, -21.0 / 46, 0); }
Slots blackman_window(const NodeCall& call) { return window(call, 0.42, -0.5, 0.08); }

/// Triangles over a spectrum, evenly apart as people hear.
Slots mel_weights(const NodeCall& call) {
  const std::int64_t bins = call.number(0), length = call.number(1), rate = call.number(2);
  const double low = Known(call, 3).real(0), high = Known(call, 4).real(0);
  if (bins < 1 || bins > 1 << 16 || length < 1 || length > 1 << 20 || rate < 1 || length / 2 + 1 > most_waves / bins) {
    call.refuse("a filter of another size than this version makes");
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double from = mel(low), step = (mel(high) - from) / static_cast<double>(bins + 2);
  const auto edge = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10, (from + static_cast<double>(i) * step) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  };
  return numbers(call, {length / 2 + 1, bins}, [&](std::int64_t i) {
    const auto at = static_cast<double>(i / bins);
    const double left = edge(i % bins), centre = edge(i % bins + 1), right = edge(i % bins + 2);
    if (at == centre) return 1.0;
    if (at >= left && at < centre) return (at - left) / (centre - left);
    return at > centre && at < right ? (right - at) / (right - centre) : 0.0;
  });
}

constexpr Operator spectrum_rows[] = {{"DFT", dft},
                                      {"STFT", stft},
                                      {"HannWindow", hann_window},
                                      {"HammingWindow", hamming_window},
                                      {"BlackmanWindow", blackman_window},
                                      {"MelWeightMatrix", mel_weights}};

}  // namespace

std::span<const Operator> spectrum_operators() { return spectrum_rows; }

}  // namespace xpuruntime::native
