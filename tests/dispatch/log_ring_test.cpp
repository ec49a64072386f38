#include "dispatch/log_ring.h"

#include <gtest/gtest.h>

#include "dispatch/decision_record.h"

namespace xpuruntime {
namespace {

TEST(LogRing, OwnsNoMoreRecordsThanItHasSlotsAndAQuarter) {
  const auto archive = std::make_shared<RecordArchive>();
  LogRing ring(100);
  std::weak_ptr<DecisionRecord> overwritten, oldest;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const auto record = std::make_shared<DecisionRecord>(Decision{}, archive);
    if (i == 9949) overwritten = record;
    if (i == 9950) oldest = record;
    ring.push({record.get(), i, 1, false});
    ring.push({record.get(), i, 2, true});
    ASSERT_LE(ring.pinned(), 126u);
  }
  auto items = ring.read();
  ASSERT_EQ(items.size(), 100u);
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(items[i].start_ticks, 9950 + i / 2);
  items.clear();
  ring.unpin_overwritten();
  EXPECT_EQ(ring.pinned(), 50u);
  EXPECT_TRUE(overwritten.expired());
  EXPECT_FALSE(oldest.expired());
  ring.forget();
  ring.unpin_overwritten();
  EXPECT_EQ(ring.pinned(), 0u);
  EXPECT_TRUE(oldest.expired());
}

}  // namespace
}  // namespace xpuruntime
