// Folders of PNG and JPEG files.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// A folder for each class with its images, `.png`, `.jpg` or `.jpeg`; classes are numbered in the
// order of their names. For `predict` also a folder of images without classes. Hidden files do not
// count; a file of another ending is refused.
//
// The model's one input of floats or u8 takes them as [N,3,H,W] (grey becomes RGB), [N,1,H,W] or
// [N,H,W] (RGB becomes grey); floats are divided by 255. resize=stretch or cover makes images of
// another size fit (datasets/image/decode.h), else they are refused. Of each file the header is
// read when the folder is opened, the pixels when a batch needs them: nothing is kept in memory.
//
// The files are sorted by class, so the examples that validate are drawn, with seed 0 where no
// other is given.
std::unique_ptr<Dataset> open_images(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
