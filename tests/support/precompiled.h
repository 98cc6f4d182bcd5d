// What most tests include, parsed once for all of them (cmake/precompiled.cmake). Each includes
// what it uses all the same: builds with ccache go without this. Headers of tests/ are not here:
// their names would be found by tests that mean their own.
#pragma once

#include <doctest/doctest.h>

#include "cmake/precompiled.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/models/models.h"
#include "engine/ops/standard_ops.h"
#include "engine/run/training_run.h"
#include "engine/session.h"
