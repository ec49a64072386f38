// The table of a thread holds what the thread repeats, and grows with it.

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "dispatch/fixture.h"
#include "dispatch/signature_table.h"

namespace xpuruntime {
namespace {

/// relu of vectors of ever other lengths on the same memory, which nothing runs on.
class ManyRelus {
 public:
  explicit ManyRelus(std::int64_t count) : memory_(Tensor::empty(DataType::float32, {count})) {
    for (std::int64_t n = 1; n <= count; ++n) {
      tensors_.push_back(Tensor::view(memory_.data(), DataType::float32, {n}));
    }
    for (const Tensor& tensor : tensors_) pointers_.push_back(&tensor);
    for (std::size_t i = 0; i < pointers_.size(); ++i) {
      calls.push_back({OpId::relu, std::span(&pointers_[i], 1), std::span(&pointers_[i], 1)});
    }
  }

  std::vector<Call> calls = {};

 private:
  Tensor memory_;
  std::vector<Tensor> tensors_ = {};
  std::vector<const Tensor*> pointers_ = {};
};

class Table : public DispatchTest {
 protected:
  /// Decides all calls and checks that each gets its own decision; returns how many were not in the table.
  std::uint64_t misses_of(const std::vector<Call>& calls) {
    const std::uint64_t before = dispatcher().table_misses();
    std::size_t wrong = 0;
    for (const Call& call : calls) {
      wrong += dispatcher().decide(call).problem.inputs[0].shape != call.inputs[0]->shape();
    }
    EXPECT_EQ(wrong, 0u);
    return dispatcher().table_misses() - before;
  }
};

TEST_F(Table, FourThousandProblemsInRotationNeverMiss) {
  ManyRelus many(4096);
  EXPECT_EQ(misses_of(many.calls), 4096u);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(misses_of(many.calls), 0u);
  std::shuffle(many.calls.begin(), many.calls.end(), std::mt19937(1));
  EXPECT_EQ(misses_of(many.calls), 0u) << "in another order";
}

TEST_F(Table, WhereMoreTakeTurnsThanItHoldsManyAreStillFound) {
  const ManyRelus many(3 * 4096);
  misses_of(many.calls);
  std::uint64_t misses = 0;
  for (int round = 0; round < 4; ++round) misses += misses_of(many.calls);
  EXPECT_LT(misses, 3 * many.calls.size());  // of 4
}

TEST_F(Table, AScopeThatComesAgainFindsItsDecisions) {
  const ManyRelus many(1000);
  const auto scoped = [&] {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    return misses_of(many.calls);
  };
  misses_of(many.calls);
  EXPECT_EQ(scoped(), 1000u);
  EXPECT_EQ(misses_of(many.calls), 0u);
  EXPECT_EQ(scoped(), 0u);
}

TEST_F(Table, AChangeOfKernelsMakesEveryDecisionAnew) {
  const ManyRelus many(1000);
  misses_of(many.calls);
  add_kernel("newer");
  EXPECT_EQ(misses_of(many.calls), 1000u);
  EXPECT_EQ(dispatcher().decide(many.calls[7]).kernel, "newer");
  EXPECT_EQ(misses_of(many.calls), 0u);
}

TEST_F(Table, RemembersWhatToAllocateForFourThousandProblems) {
  const ManyRelus many(4096);
  for (const Call& call : many.calls) dispatcher().output_specs(call);
  for (const Call& call : many.calls) {
    const auto* known = dispatcher().known_output_specs(call);
    ASSERT_NE(known, nullptr);
    ASSERT_EQ(known->front().shape, call.inputs[0]->shape());
  }
}

/// What relu makes of vectors of -1 and of their lengths, by calls that know their sites, in a random order.
class Repeated {
 public:
  explicit Repeated(std::size_t count) : relus_(count), sites_(count) {
    for (std::size_t i = 0; i < count; ++i) relus_[i] = std::make_unique<Relu>(static_cast<std::int64_t>(i) + 2);
  }

  /// How many results are wrong.
  std::size_t run(Dispatcher& dispatcher, unsigned seed) {
    std::vector<std::size_t> order(relus_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::size_t wrong = 0;
    for (const std::size_t i : order) {
      Relu& relu = *relus_[i];
      const std::size_t n = i + 2;
      std::fill_n(relu.in.as<float>(), n, -1.0f);
      std::fill_n(relu.out.as<float>(), n, -2.0f);
      relu.in.as<float>()[n - 1] = static_cast<float>(seed + i);
      dispatcher.dispatch(relu.call(), sites_[i]);
      wrong += relu.out.as<float>()[0] != 0 || relu.out.as<float>()[n - 1] != static_cast<float>(seed + i);
    }
    return wrong;
  }

  Relu& relu(std::size_t i) { return *relus_[i]; }
  CallSite& site(std::size_t i) { return sites_[i]; }

 private:
  std::vector<std::unique_ptr<Relu>> relus_;
  std::vector<CallSite> sites_;
};

TEST_F(Table, CallsThatKnowTheirSitesAreFoundInAnyOrder) {
  Repeated repeated(200);
  EXPECT_EQ(repeated.run(dispatcher(), 1), 0u);
  const std::uint64_t misses = dispatcher().table_misses();
  for (unsigned seed = 2; seed < 5; ++seed) EXPECT_EQ(repeated.run(dispatcher(), seed), 0u);
  EXPECT_EQ(dispatcher().table_misses(), misses);
}

TEST_F(Table, SitesAreOfOneTable) {
  Repeated repeated(50);
  for (unsigned seed = 1; seed < 4; ++seed) {
    std::thread([&] { EXPECT_EQ(repeated.run(dispatcher(), seed), 0u); }).join();  // its table ends with it
  }
  EXPECT_EQ(repeated.run(dispatcher(), 4), 0u);
  Runtime other({false, false, {}});
  EXPECT_EQ(repeated.run(other.dispatcher(), 5), 0u);
  EXPECT_EQ(repeated.run(dispatcher(), 6), 0u);
}

TEST_F(Table, ASiteHasNoOldDecision) {
  Repeated repeated(3);
  repeated.run(dispatcher(), 1);
  const auto newer = add_kernel("newer");
  dispatcher().dispatch(repeated.relu(0).call(), repeated.site(0));
  EXPECT_EQ(*newer, 1);
  KernelPolicy policy;
  policy.preferences[OpId::relu] = {{"reference"}, true};
  {
    const ScopedPolicy scope(dispatcher(), policy);
    dispatcher().dispatch(repeated.relu(0).call(), repeated.site(0));
  }
  EXPECT_EQ(*newer, 1);
  dispatcher().dispatch(repeated.relu(0).call(), repeated.site(1));  // another call's site costs time alone
  EXPECT_EQ(*newer, 2);
}

TEST_F(Table, WhatASiteWritesOverIsCheckedTheFirstTime) {
  Relu relu(8);
  const Tensor shifted = Tensor::view(relu.in.as<float>() + 4, DataType::float32, {4});
  const Tensor front = Tensor::view(relu.in.data(), DataType::float32, {4});
  const Tensor next = Tensor::view(relu.in.as<float>() + 1, DataType::float32, {4});
  const Tensor *in[] = {&front}, *over[] = {&next}, *beside[] = {&shifted};
  CallSite site;
  expect_invalid("overlaps input 0", [&] { dispatcher().dispatch({OpId::relu, in, over}, site); });
  dispatcher().dispatch({OpId::relu, in, beside}, site);
}

struct Noted {
  void empty() {
    signature = {};
    value = -1;
  }
  signature::Words signature = {};
  int value = 0;
};

TEST(SignatureTable, GrowsWithWhatIsInIt) {
  const ManyRelus many(100);
  SignatureTable<Noted> table(128);
  EXPECT_EQ(table.slot_count(), 0u) << "a thread that calls nothing";
  for (int i = 0; i < 100; ++i) {
    table.insert(many.calls[i], 1).value = i;
    EXPECT_LE(table.slot_count(), std::max<std::size_t>(64, 4 * table.size()));
    EXPECT_GE(table.slot_count(), 2 * table.size()) << "half of them at most are in use";
  }
  EXPECT_EQ(table.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(table.find(many.calls[i], 1), nullptr);
    EXPECT_EQ(table.find(many.calls[i], 1)->value, i);
    EXPECT_EQ(table.find(many.calls[i], 2), nullptr) << "another generation";
  }
}

TEST(SignatureTable, HoldsNoMoreThanItMay) {
  const ManyRelus many(1000);
  SignatureTable<Noted> table(128);
  for (const Call& call : many.calls) {
    table.insert(call, 1);
    ASSERT_LE(table.size(), 128u);
    ASSERT_NE(table.find(call, 1), nullptr) << "the latest is there";
  }
  EXPECT_EQ(table.slot_count(), 256u);
}

TEST(SignatureTable, WhatIsEvictedKeepsItsContentsUntilItIsReleased) {
  const ManyRelus many(200);
  SignatureTable<Noted> table(128);
  std::vector<Noted*> first;
  for (int i = 0; i < 128; ++i) {
    first.push_back(&table.insert(many.calls[i], 1));
    first.back()->value = i;
  }
  table.insert(many.calls[128], 1).value = 128;
  EXPECT_EQ(table.size(), 113u);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(first[i]->value, i);
  for (int i = 129; i < 140; ++i) table.insert(many.calls[i], 1).value = i;  // none of them in the place of another
  for (int i = 0; i < 128; ++i) EXPECT_EQ(first[i]->value, i);
  table.release_evicted();
  EXPECT_EQ(std::count_if(first.begin(), first.end(), [](const Noted* noted) { return noted->value == -1; }), 16);
}

TEST(SignatureTable, ANewGenerationGivesTheMemoryOfTheOldOneBack) {
  const ManyRelus many(128);
  SignatureTable<Noted> table(128);
  for (const Call& call : many.calls) table.insert(call, 1);
  table.insert(many.calls[0], 2);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.slot_count(), 64u);
  EXPECT_EQ(table.find(many.calls[0], 1), nullptr);
  EXPECT_NE(table.find(many.calls[0], 2), nullptr);
}

TEST(SignatureTable, TellsLongSignaturesApartWordByWord) {
  // Six dimensions with strides: far more words than lie in place.
  const Tensor memory = Tensor::empty(DataType::float32, {4096});
  SignatureTable<Noted> table(128);
  std::vector<Tensor> tensors;
  for (std::int64_t last = 1; last <= 50; ++last) {
    tensors.emplace_back(memory.data(), make_spec(DataType::float32, {2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32 + last}));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* one[] = {&tensors[i]};
    table.insert({OpId::relu, one, one}, 1).value = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* one[] = {&tensors[i]};
    ASSERT_NE(table.find({OpId::relu, one, one}, 1), nullptr);
    EXPECT_EQ(table.find({OpId::relu, one, one}, 1)->value, static_cast<int>(i));
  }
}

}  // namespace
}  // namespace xpuruntime
