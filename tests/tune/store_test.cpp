#include "xpuruntime/tune/store.h"

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

using Store = StoreTest;

TEST_F(Store, GivesBackWhatWasPut) {
  const auto store = open_store(path_);
  EXPECT_EQ(store->path(), path_);
  EXPECT_FALSE(store->read_only());
  EXPECT_TRUE(store->read().empty());
  TuneRecord record = record_of(problem(1));
  record.measurements[0].time_us = 0.1 + 0.2;  // no short decimal
  record.measurements[0].workspace_bytes = UINT64_MAX;
  record.measurements[1].measured_at = INT64_MIN;
  store->put(xeon(), record);
  store->put(h200(), {});
  const StoreContents expected = {{xeon(), record}};
  EXPECT_EQ(store->read(), expected);
  EXPECT_EQ(open_store(path_)->read(), expected);
  EXPECT_EQ(entry_count(expected), 4);
  store->check();
}

TEST_F(Store, ReplacesAKeyByWhatComesLaterWhateverTheClockSaid) {
  const auto store = open_store(path_);
  store->put(xeon(), {{measured(problem(1), "small", 5, 2000)}, {chosen(problem(1), "small", 2000)}, {}});
  store->put(xeon(), {{measured(problem(1), "small", 7, 1000)}, {chosen(problem(1), "packed", 1000)}, {}});
  const TuneRecord record = store->read().front().record;
  ASSERT_EQ(record.measurements.size(), 1);
  EXPECT_EQ(record.measurements[0], measured(problem(1), "small", 7, 1000));
  ASSERT_EQ(record.choices.size(), 1);
  EXPECT_EQ(record.choices[0].kernel, "packed");
}

TEST_F(Store, KeepsPlansKernelsProblemsAndEnvironmentsApart) {
  const auto store = open_store(path_);
  store->put(xeon(),
             {{measured(problem(1), "small", 1, 1000, "tile=8"), measured(problem(1), "small", 2, 1000, "tile=4"),
               measured(problem(1) + " workspace_limit=64", "small", 3)}});
  store->put(xeon("0.3.28"), {{measured(problem(1), "small", 4, 1000, "tile=8")}});
  const StoreContents contents = store->read();
  ASSERT_EQ(contents.size(), 2);
  EXPECT_EQ(contents[0].environment, xeon());
  ASSERT_EQ(contents[0].record.measurements.size(), 3);
  EXPECT_EQ(contents[0].record.measurements[0].plan, "tile=4");
  EXPECT_EQ(contents[0].record.measurements[1].plan, "tile=8");
  EXPECT_EQ(contents[0].record.measurements[2].problem, problem(1) + " workspace_limit=64");
  EXPECT_EQ(contents[1].environment, xeon("0.3.28"));
  EXPECT_EQ(contents[1].record.measurements[0].time_us, 4);
}

TEST_F(Store, ASnapshotIsFrozen) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1), 1.5));
  const auto frozen = store->freeze(xeon());
  store->put(xeon(), record_of(problem(1), 9));
  store->put(xeon(), record_of(problem(2)));
  EXPECT_EQ(frozen->size(), 1);
  EXPECT_FALSE(frozen->find(problem(2)));
  EXPECT_FALSE(frozen->find(""));
  EXPECT_FALSE(frozen->find(problem(1).substr(1)));
  const auto entry = frozen->find(problem(1));
  ASSERT_TRUE(entry);
  const TuneRecord expected = record_of(problem(1), 1.5);
  EXPECT_EQ(entry->measurements, expected.measurements);
  EXPECT_EQ(entry->choice, expected.choices[0]);
  EXPECT_EQ(entry->quarantine, expected.quarantine);
  EXPECT_EQ(entry->stale, "");
  EXPECT_EQ(store->freeze(xeon())->size(), 2);
}

TEST_F(Store, ASnapshotShowsOtherEnvironmentsAsStaleAndOtherDevicesNotAtAll) {
  const auto store = open_store(path_);
  store->put(xeon("0.3.20"), record_of(problem(1), 3, 5000));
  store->put(xeon("0.3.28"), record_of(problem(1), 4, 4000));
  store->put(h200(), record_of(problem(2)));
  store->put(xeon("0.3.28"), {{}, {}, {{problem(3), "broken", "it hung", 1}}});
  const auto entry = store->freeze(xeon())->find(problem(1));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->stale, "openblas 0.3.20 there, 0.3.21 here");  // the one measured later
  EXPECT_EQ(entry->choice->measured_at, 5000);
  EXPECT_TRUE(entry->quarantine.empty());
  EXPECT_FALSE(store->freeze(xeon())->find(problem(2)));
  EXPECT_FALSE(store->freeze(xeon())->find(problem(3)));
  EXPECT_TRUE(store->freeze(h200())->find(problem(2)));
  EXPECT_FALSE(store->freeze(h200())->find(problem(1)));

  store->put(xeon(), record_of(problem(1), 5, 1));  // from here, though its clock says earlier
  const auto fresh = store->freeze(xeon())->find(problem(1));
  EXPECT_EQ(fresh->stale, "");
  EXPECT_EQ(fresh->choice->measured_at, 1);
}

TEST_F(Store, ASnapshotFindsEachOfManyProblems) {
  const auto store = open_store(path_);
  TuneRecord record;
  for (int i = 0; i < 3000; ++i) record.measurements.push_back(measured(problem(i), "small", i));
  store->put(xeon(), record);
  const auto frozen = store->freeze(xeon());
  EXPECT_EQ(frozen->size(), 3000);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(frozen->find(problem(i))->measurements[0].time_us, i);
  EXPECT_FALSE(frozen->find(problem(3000)));
}

TEST_F(Store, MergingKeepsTheNewerAndDoesNotDependOnTheOrder) {
  const StoreContents a = {{xeon(),
                            {{measured(problem(1), "small", 1, 1000), measured(problem(2), "small", 2, 1000)},
                             {chosen(problem(1), "small", 3000)},
                             {}}}};
  const StoreContents b = {{xeon(),
                            {{measured(problem(1), "small", 5, 2000), measured(problem(2), "small", 1, 1000)},
                             {chosen(problem(1), "packed", 3000)},
                             {{problem(1), "broken", "it hung", 1}}}},
                           {h200(), record_of(problem(1))}};
  const auto merged = [this](const char* name, const StoreContents& first, const StoreContents& second) {
    const auto store = open_store((folder_ / name).string());
    store->merge(first);
    store->merge(second);
    EXPECT_EQ(store->merge(first), 0);
    EXPECT_EQ(store->merge(second), 0);
    return store->read();
  };
  const StoreContents one = merged("one", a, b);
  EXPECT_EQ(one, merged("other", b, a));
  EXPECT_EQ(time_of(one, problem(1), "small"), 5);
  EXPECT_EQ(entry_count(one), 8);
  EXPECT_EQ(open_store((folder_ / "third").string())->merge(b), 8);
}

TEST_F(Store, PrunesAndReadsWhatAFilterMeans) {
  const auto store = open_store(path_);
  const std::string relu = "relu(f32[8]) @cpu:0", backward = "relu:backward(f32[8], f32[8]) @cpu:0";
  store->put(xeon(), record_of(problem(1), 1, 1000));
  store->put(xeon(), record_of(relu, 1, 3000));
  store->put(xeon(), record_of(backward, 1, 2000));
  store->put(h200(), record_of(problem(1), 1, 1000));
  const auto count = [&](const StoreFilter& filter) { return entry_count(store->read(filter)); };
  EXPECT_EQ(count({}), 16);
  EXPECT_EQ(count({.op = "relu"}), 8);
  EXPECT_EQ(count({.op = "rel"}), 0);
  EXPECT_EQ(count({.kernel = "small"}), 8);  // measured and chosen
  EXPECT_EQ(count({.kernel = "broken"}), 4);
  EXPECT_EQ(count({.environment_id = h200().id()}), 4);
  EXPECT_EQ(count({.older_than = 2000}), 8);
  EXPECT_EQ(count({.op = "relu", .kernel = "packed", .older_than = 3000}), 1);
  expect_invalid("without a filter", [&] { store->prune({}); });
  EXPECT_EQ(count({}), 16);
  EXPECT_EQ(store->prune({.op = "relu", .kernel = "packed", .older_than = 3000}), 1);
  EXPECT_EQ(store->prune({.op = "relu", .kernel = "packed", .older_than = 3000}), 0);
  EXPECT_EQ(store->prune({.environment_id = h200().id()}), 4);
  EXPECT_EQ(count({}), 11);
  EXPECT_EQ(store->prune({.older_than = INT64_MAX}), 11);
  EXPECT_TRUE(store->read().empty());
  store->check();
}

TEST_F(Store, RefusesRecordsThatCannotBeRightAndChangesNothing) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  const StoreContents before = store->read();
  const auto refused = [&](const char* part, auto spoil) {
    TuneRecord record = record_of(problem(2));
    spoil(record);
    expect_invalid(part, [&] { store->put(xeon(), record); });
    expect_invalid(part, [&] { store->merge({{xeon(), record}}); });
    EXPECT_EQ(store->read(), before);
  };
  refused("time_us", [](TuneRecord& record) { record.measurements[1].time_us = std::nan(""); });
  refused("time_us", [](TuneRecord& record) { record.measurements[1].time_us = -1; });
  refused("noise_us", [](TuneRecord& r) { r.measurements[1].noise_us = std::numeric_limits<double>::infinity(); });
  refused("runs", [](TuneRecord& record) { record.measurements[1].runs = -1; });
  refused("problem", [](TuneRecord& record) { record.measurements[1].problem = ""; });
  refused("problem", [](TuneRecord& record) { record.choices[0].problem = "two\nlines"; });
  refused("kernel", [](TuneRecord& record) { record.quarantine[0].kernel = ""; });
  refused("kernel", [](TuneRecord& record) { record.choices[0].kernel = "\xff"; });
}

TEST_F(Store, KeepsWhatAKernelSaidEvenIfItIsNoText) {
  const auto store = open_store(path_);
  store->put(xeon(), {{}, {}, {{problem(1), "broken", std::string("bad \xff byte, zero \0 and \n", 23), 1}}});
  const std::string reason = store->read().front().record.quarantine.at(0).reason;
  EXPECT_EQ(reason, std::string("bad \xef\xbf\xbd byte, zero \0 and \n", 25));
  EXPECT_EQ(store_contents_from_json(to_json(store->read())), store->read());
}

TEST_F(Store, ServesManyThreads) {
  const auto store = open_store(path_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        store->put(xeon(), record_of(problem(t * 100 + i)));
        store->put(xeon(), record_of(problem(7), t));
        EXPECT_TRUE(store->freeze(xeon())->find(problem(t * 100 + i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entry_count(store->read()), 4 * 40);  // problem 7 is one of the first thread's own
  store->check();
}

}  // namespace
}  // namespace xpuruntime
