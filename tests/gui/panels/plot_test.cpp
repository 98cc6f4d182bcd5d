// The numbers beside axes.
#include "gui/panels/plot.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gui/ui/quantity.h"

namespace trainscope::gui {
namespace {

TEST_SUITE_BEGIN("gui");

TEST_CASE("tick_texts: numbers of a linear axis have as many decimals each, others are short") {
  using Texts = std::vector<std::string>;
  constexpr AxisScale kLinear = AxisScale::kLinear;
  CHECK(tick_texts(std::vector{3.5, 4.0, 4.5}, kLinear) == Texts{"3.5", "4.0", "4.5"});
  CHECK(tick_texts(std::vector{0.0, 0.25, 0.5}, kLinear) == Texts{"0.00", "0.25", "0.50"});
  CHECK(tick_texts(std::vector{100.0, 200.0}, kLinear) == Texts{"100", "200"});
  CHECK(tick_texts(std::vector{-0.1, 0.1 - 0.1, 0.1}, kLinear) == Texts{"-0.1", "0.0", "0.1"});
  CHECK(tick_texts(std::vector{0.0, 2e31}, kLinear) == Texts{"0", "2e+31"});
  CHECK(tick_texts(std::vector{0.0, 2e-5}, kLinear) == Texts{"0", "2e-05"});
  CHECK(tick_texts(std::vector{0.01, 1.0, 100.0}, AxisScale::kLogarithmic) ==
        Texts{"0.01", "1", "100"});
  CHECK(tick_texts(std::vector<double>{}, kLinear).empty());
}

TEST_CASE("tick_texts: ticks of narrow ranges are told apart, and each text is its tick") {
  using Texts = std::vector<std::string>;
  constexpr AxisScale kLinear = AxisScale::kLinear;
  CHECK(tick_texts(std::vector{0.00120, 0.00121, 0.00122}, kLinear) ==
        Texts{"0.00120", "0.00121", "0.00122"});
  CHECK(tick_texts(std::vector{0.00105, 0.00110}, kLinear) == Texts{"0.00105", "0.00110"});
  CHECK(tick_texts(std::vector{100.0, 100.0001}, kLinear) == Texts{"100.0000", "100.0001"});
  CHECK(tick_texts(std::vector{1e5, 1.005e5}, kLinear) == Texts{"100000", "100500"});
  CHECK(tick_texts(std::vector{1.0e-6, 1.2e-6}, kLinear) == Texts{"1.0e-06", "1.2e-06"});
  CHECK(tick_texts(std::vector{1.4e308, 1.6e308}, kLinear) == Texts{"1.4e+308", "1.6e+308"});
  CHECK(tick_texts(std::vector{1.9771e31, 1.9772e31}, kLinear) ==
        Texts{"1.9771e+31", "1.9772e+31"});
  CHECK(tick_texts(std::vector{0.5, 0.5 + 2e-12, 0.5 + 4e-12}, kLinear) ==
        Texts{"0.5", "+2e-12", "+4e-12"});
}

TEST_CASE("byte_tick_texts: each text is its tick") {
  using Texts = std::vector<std::string>;
  constexpr double kKib = 1024.0;
  constexpr double kMib = 1024.0 * kKib;
  CHECK(byte_tick_texts(std::vector{0.0, 500 * kKib, kMib}) ==
        Texts{"0 B", "500.0 KiB", "1.0 MiB"});
  CHECK(byte_tick_texts(std::vector{1180 * kKib, 1200 * kKib, 1220 * kKib}) ==
        Texts{grouped(1180) + " KiB", grouped(1200) + " KiB", grouped(1220) + " KiB"});
  CHECK(byte_tick_texts(std::vector{0.0, 600 * kKib, 1200 * kKib}) ==
        Texts{"0 KiB", "600 KiB", grouped(1200) + " KiB"});  // not 1.2 MiB: 1.17
  CHECK(byte_tick_texts(std::vector{5 * kMib, 5 * kMib + 10.0}) == Texts{"5.0 MiB", "+10 B"});
  CHECK(byte_tick_texts(std::vector<double>{}).empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
