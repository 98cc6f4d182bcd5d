// What is done to images on their way into a batch: normalisation, and small random changes of
// those that train.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/train/data.h"

namespace trainscope {

struct ImageChanges {
  // y = (x - mean) / standard deviation, of each channel or one for all; empty: as it is.
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
  bool flip = false;  // left to right, of half of the images, each drawn
  // As if an image had a margin of so many zeros, and moved by up to so many pixels.
  std::int64_t crop = 0;

  bool is_any() const { return !mean.empty() || flip || crop > 0; }
};

// Images are the one field of f32 or f64 beside `labels` (the name of the labels' field) with
// examples [C,H,W] or [H,W]. In the order of torchvision's usual transforms: crop, flip, normalise.
// Those that validate are normalised alone. What changes an image is drawn by counter
// (kernels/api/random.h): stream kImageStreams + epoch, block: its index among the images that
// train; word 0: flip where odd; words 1 and 2: moves down and right, modulo 2 crop + 1. So it does
// not depend on the batch, the thread or where a run began.
//
// Throws kUsage where the data are no images, have another number of channels, or hold, where
// images are moved, a field with a place for each pixel: a mask would not move with its image.
std::shared_ptr<const Dataset> with_image_changes(std::shared_ptr<const Dataset> images,
                                                  std::string_view labels,
                                                  const ImageChanges& changes, std::uint64_t seed);

}  // namespace trainscope
