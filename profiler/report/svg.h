// The plane that charts are drawn in: numbers to places, axes, the picture around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainscope::profiler {

struct Scale {
  double low = 0.0;
  double high = 1.0;
  bool logarithmic = false;

  double at(double value) const;  // 0 at `low`, 1 at `high`
};

struct AxisTexts {
  std::string x_label = {};
  std::string y_label = {};
  std::string (*x_text)(double) = nullptr;
  std::string (*y_text)(double) = nullptr;
};

// Places are in units of a picture of 720 by 260, which the page scales to its width.
class Plane {
 public:
  Plane(const Scale& across, const Scale& up, double picture_height = 260.0);

  double x(double value) const;
  double y(double value) const;
  double width() const;
  double height() const;

  // Lines and numbers at these ticks, and the labels.
  std::string axes(const AxisTexts& texts, const std::vector<double>& x_ticks,
                   const std::vector<double>& y_ticks) const;
  // The picture; `content` is markup.
  std::string svg(std::string_view title, std::string_view content) const;

 private:
  Scale across_;
  Scale up_;
  double picture_height_;
};

// The picture with its title as caption; `content` is markup.
std::string figure(std::string_view title, std::string_view content);

}  // namespace trainscope::profiler
