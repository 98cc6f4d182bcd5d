// The class of the op that a call of a recorded plan runs.
#pragma once

#include "engine/bundle/plan_record.h"
#include "engine/core/op_class.h"

namespace trainscope {

// As the record says it. Records of older programs and of other engines do not: then by the row of
// the op of that name, in its absence by that of the op whose gradient the name says it is, as
// other engines write it ("GemmGrad"); kOther where there is neither. kUnstated where no op runs: a
// copy.
OpClass class_of(const PlanView& plan, const PlanCall& call);
// The same by a name alone.
OpClass class_of_op(std::string_view op);

}  // namespace trainscope
