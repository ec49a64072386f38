// A small training run: two layers, full batches, every op of both directions through the dispatcher. In f32, in bf16
// and in f16 under autocast; f16 needs its loss scaled.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "xpuruntime/dispatch/grad_scaler.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

constexpr std::int64_t samples = 256, features = 16, hidden = 48, classes = 6;
constexpr int steps = 150;

/// Points around one centre for each class, near enough to each other to need the hidden layer.
struct Task {
  Task() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> centres(classes * features);
    for (float& value : centres) value = normal(random);
    for (std::int64_t i = 0; i < samples; ++i) {
      targets.as<std::int64_t>()[i] = i % classes;
      for (std::int64_t j = 0; j < features; ++j) {
        x.as<float>()[i * features + j] = centres[i % classes * features + j] + 1.2f * normal(random);
      }
    }
  }

  Tensor x = Tensor::empty(DataType::float32, {samples, features});
  Tensor targets = Tensor::empty(DataType::int64, {samples});
};

struct Settings {
  std::optional<DataType> autocast = {};
  bool scaling = false;
  float loss_weight = 1;  // of this loss among others, say: what gradients are small by
  int overflow_at = -1;   // the step in which the gradient that backward starts from is infinite
};

struct Result {
  std::vector<double> losses = {};  // of each step, by the network itself
  std::vector<float> weights_before_overflow = {}, weights_after_overflow = {};
  LossScalerStatistics scaler = {};
};

/// linear - gelu - linear - cross_entropy, with weights and update in f32.
class Network {
 public:
  Network(Runtime& runtime, const Settings& settings) : runtime_(runtime), settings_(settings) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (Tensor* weight : {&weights_[0], &weights_[2]}) {
      const float size = 1 / std::sqrt(static_cast<float>(weight->shape()[1]));
      for (std::int64_t i = 0; i < element_count(weight->spec()); ++i) weight->as<float>()[i] = size * normal(random);
    }
    for (Tensor* bias : {&weights_[1], &weights_[3]}) {
      std::fill_n(bias->as<float>(), element_count(bias->spec()), 0.0f);
    }
    changed();
  }

  Result train(const Task& task) {
    Result result;
    GradScaler scaler(runtime_.dispatcher(), settings_.scaling
                                                 ? LossScalerConfig{.growth_interval = 50}
                                                 : LossScalerConfig{.initial_scale = 1, .dynamic = false});
    for (int step = 0; step < steps; ++step) {
      const ScopePtr scope = scope_for_training();
      const ScopedPolicy guard(runtime_.dispatcher(), scope);
      result.losses.push_back(forward(task));
      const bool overflows = step == settings_.overflow_at;
      backward(task, settings_.loss_weight * scaler.factor() * (overflows ? infinity : 1.0f));
      if (overflows) result.weights_before_overflow = all_weights();
      scaler.unscale(gradients_, gradients_);
      scaler.step([&] { descend(2.0f / settings_.loss_weight); });
      scaler.update();
      if (overflows) result.weights_after_overflow = all_weights();
    }
    result.scaler = scaler.scaler().statistics();
    return result;
  }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  ScopePtr scope_for_training() {
    const Autocast autocast = settings_.autocast ? make_autocast(runtime_.amp(), true, settings_.autocast) : Autocast();
    return runtime_.dispatcher().layered_scope(autocast);
  }

  /// Runs an op into tensors of the dtypes that its precision makes.
  std::vector<Tensor> run(OpId op, std::vector<const Tensor*> inputs) {
    Call call{.op = op, .inputs = inputs};
    std::vector<Tensor> outputs;
    for (const TensorSpec& spec : runtime_.dispatcher().output_specs(call)) {
      outputs.push_back(Tensor::empty(spec.dtype, spec.shape));
    }
    run_into(call, outputs);
    return outputs;
  }
  /// Gradients have the dtypes of what they are gradients of.
  std::vector<Tensor> run_backward(OpId op, std::vector<const Tensor*> inputs, std::vector<Tensor> outputs) {
    run_into({.op = op, .inputs = inputs, .direction = Direction::backward}, outputs);
    return outputs;
  }
  void run_into(Call call, const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> outputs;
    for (const Tensor& tensor : tensors) outputs.push_back(&tensor);
    call.outputs = outputs;
    runtime_.dispatcher().dispatch(call);
  }
  static Tensor like(const Tensor& tensor) { return Tensor::empty(tensor.dtype(), tensor.shape()); }

  double forward(const Task& task) {
    h_ = run(OpId::linear, {&task.x, &weights_[0], &weights_[1]}).front();
    a_ = run(OpId::gelu, {&h_}).front();
    logits_ = run(OpId::linear, {&a_, &weights_[2], &weights_[3]}).front();
    loss_ = run(OpId::cross_entropy, {&logits_, &task.targets}).front();
    EXPECT_EQ(loss_.dtype(), DataType::float32) << "losses are computed in the higher precision";
    EXPECT_EQ(logits_.dtype(), settings_.autocast.value_or(DataType::float32));
    return loss_.as<float>()[0];
  }

  void backward(const Task& task, float start) {
    const Tensor seed = Tensor::empty(DataType::float32, {});
    *seed.as<float>() = start;
    const Tensor dlogits = run_backward(OpId::cross_entropy, {&logits_, &task.targets, &seed}, {like(logits_)}).front();
    const Tensor da = like(a_), dx = like(task.x);
    run_backward(OpId::linear, {&a_, &weights_[2], &weights_[3], &dlogits}, {da, gradients_[2], gradients_[3]});
    const Tensor dh = run_backward(OpId::gelu, {&h_, &da}, {like(h_)}).front();
    run_backward(OpId::linear, {&task.x, &weights_[0], &weights_[1], &dh}, {dx, gradients_[0], gradients_[1]});
  }

  void descend(float rate) {
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::int64_t i = 0; i < element_count(weights_[p].spec()); ++i) {
        weights_[p].as<float>()[i] -= rate * gradients_[p].as<float>()[i];
      }
    }
    changed();
  }

  void changed() {
    for (Tensor& weight : weights_) weight.set_version(Tensor::new_version());
  }

  std::vector<float> all_weights() const {
    std::vector<float> out;
    for (const Tensor& weight : weights_) {
      out.insert(out.end(), weight.as<float>(), weight.as<float>() + element_count(weight.spec()));
    }
    return out;
  }

  Runtime& runtime_;
  Settings settings_;
  std::vector<Tensor> weights_ = {
      Tensor::empty(DataType::float32, {hidden, features}), Tensor::empty(DataType::float32, {hidden}),
      Tensor::empty(DataType::float32, {classes, hidden}), Tensor::empty(DataType::float32, {classes})};
  std::vector<Tensor> gradients_ = {like(weights_[0]), like(weights_[1]), like(weights_[2]), like(weights_[3])};
  Tensor h_, a_, logits_, loss_;
};

class Training : public ::testing::Test {
 protected:
  Result train(const Settings& settings) { return Network(runtime_, settings).train(task_); }

  Runtime runtime_{{false, false, {}}};
  Task task_;
};

constexpr double margin = 0.05;  // of the loss in f32, relative: the rounding of 16 bits moves the path, not the end

TEST_F(Training, InF32ReducesTheLossByMuch) {
  const Result f32 = train({});
  EXPECT_NEAR(f32.losses.front(), std::log(static_cast<double>(classes)), 0.5) << "a guess among all classes";
  EXPECT_LT(f32.losses.back(), 0.25 * f32.losses.front());
}

TEST_F(Training, InBf16ReachesTheLossOfF32) {
  const double f32 = train({}).losses.back();
  const double bf16 = train({.autocast = DataType::bfloat16}).losses.back();
  EXPECT_NEAR(bf16, f32, margin * f32);
}

// Gradients of this loss are small by 2^-20: most of them are below the least f16.
constexpr float small_weight = 0x1p-20f;

TEST_F(Training, InF16WithScalingReachesTheLossOfF32) {
  const double f32 = train({.loss_weight = small_weight}).losses.back();
  const Result f16 = train({.autocast = DataType::float16, .scaling = true, .loss_weight = small_weight});
  EXPECT_NEAR(f16.losses.back(), f32, margin * f32);
  EXPECT_EQ(f16.scaler.skipped_steps, 0);
  EXPECT_GT(f16.scaler.growths, 0);
}

TEST_F(Training, InF16WithoutScalingDoesNot) {
  const Result f32 = train({.loss_weight = small_weight});
  const Result f16 = train({.autocast = DataType::float16, .loss_weight = small_weight});
  EXPECT_GT(f16.losses.back(), 2 * f32.losses.back()) << "gradients that vanished teach nothing";
}

TEST_F(Training, AnOverflowIsSkippedAndRecoveredFrom) {
  const double f32 = train({.loss_weight = small_weight}).losses.back();
  const Result f16 =
      train({.autocast = DataType::float16, .scaling = true, .loss_weight = small_weight, .overflow_at = 20});
  EXPECT_EQ(f16.scaler.skipped_steps, 1);
  EXPECT_EQ(f16.scaler.backoffs, 1);
  EXPECT_EQ(f16.weights_before_overflow, f16.weights_after_overflow) << "the step was skipped whole";
  EXPECT_EQ(f16.losses[20], f16.losses[21]);
  EXPECT_LT(f16.losses[22], f16.losses[21]) << "and the next one was not";
  EXPECT_NEAR(f16.losses.back(), f32, margin * f32);
}

}  // namespace
}  // namespace xpuruntime
