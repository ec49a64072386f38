#include "core/json_fields.h"

#include <gtest/gtest.h>

#include "core/elements.h"
#include "core/expect_error.h"
#include "core/usable_cores.h"

namespace xpuruntime {
namespace {

struct Part {
  std::string name = {};
  double size = 0;

  bool operator==(const Part&) const = default;
};

struct Thing {
  Part own = {};
  std::vector<Part> parts = {};
  std::optional<std::uint32_t> count = {};
  std::string note = {};

  bool operator==(const Thing&) const = default;
};

}  // namespace

template <>
struct FieldsOf<Part> {
  static constexpr FieldRow<Part> rows[] = {required_field<&Part::name>("name"), field<&Part::size>("size")};
};

template <>
struct FieldsOf<Thing> {
  static constexpr FieldRow<Thing> rows[] = {
      version_field<Thing, 2>(),
      required_field<&Thing::own, &Part::name>("name"),
      field<&Thing::parts>("parts"),
      field<&Thing::count>("count"),
      text_or_nothing<&Thing::note>("note"),
  };
};

namespace {

Thing read(std::string_view text) { return read_document<Thing>(text, {"read", "a text: ", "thing", 4, text}); }

TEST(JsonFields, WritesInTheOrderOfTheTableAndLeavesOutWhatIsNotSet) {
  const Thing thing = {{"a", 0}, {{"b", 1.5}}, {}, {}};
  EXPECT_EQ(dump_json(written(thing)), R"({"name":"a","parts":[{"name":"b","size":1.5}]})");
  const Thing full = {{"a", 0}, {}, 3, "c"};
  EXPECT_EQ(dump_json(written(full, {{"version", 2}})), R"({"version":2,"name":"a","parts":[],"count":3,"note":"c"})");
  EXPECT_EQ(read(dump_json(written(thing))), thing);
  EXPECT_EQ(read(dump_json(written(full))), full);
}

TEST(JsonFields, NamesTheFieldThatIsWrongAndItsPlace) {
  const auto refused = [](const char* text, const char* part) { expect_invalid(part, [&] { read(text); }); };
  refused("[]", "a text: a thing is a JSON object");
  refused("{}", "field 'name' is missing; add it");
  refused("{\n \"name\": 3}", "line 2, column 2: field 'name' must be a string");
  refused(R"({"name": "a", "nme": 3})",
          "line 1, column 15: field 'nme' is not a thing field; remove it, or did you mean name?");
  refused(R"({"name": "a", "parts": [{"name": "b"}, {}]})", "field 'parts[1].name' is missing");
  refused(R"({"name": "a", "parts": [{"name": "b", "size": -1}]})",
          "field 'parts[0].size' must be a number, 0 or more");
  refused(R"({"name": "a", "parts": [3]})", "field 'parts[0]' must be an object");
  refused(R"({"name": "a", "count": 4294967296})", "field 'count' must be a whole number from 0 to 4294967295");
}

TEST(JsonFields, SaysThatAVersionIsLaterBeforeItMeetsThatVersionsFields) {
  expect_invalid("field 'version' must be 1 or 2", [] { read(R"({"new": 1, "version": 3})"); });
}

TEST(Elements, KnowTheEpsilonOfEachFloat) {
  EXPECT_EQ(epsilon_of(DataType::float64), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon_of(DataType::float32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon_of(DataType::bfloat16), 0x1p-7);
  EXPECT_EQ(epsilon_of(DataType::int8), 0);
}

TEST(Elements, AreReadAtAnyAddress) {
  alignas(8) std::byte bytes[17];
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    store_element(dtype, bytes + 1, 1);
    EXPECT_EQ(load_element(dtype, bytes + 1), 1) << to_string(dtype);
  }
}

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace xpuruntime
