// The definitions of everything in declarations.h, with TensorFlow's headers. This header is
// precompiled.
#ifndef FASTOPS_CPP_DEFINITIONS_H_
#define FASTOPS_CPP_DEFINITIONS_H_

#include "acceptance.h"
#include "arrays.h"
#include "backprop.h"
#include "capi.h"
#include "draws.h"
#include "frame.h"
#include "graph.h"
#include "handle.h"
#include "kernel.h"
#include "opdef.h"
#include "placed.h"
#include "plan.h"
#include "recorded_call.h"
#include "rows.h"
#include "runtime.h"
#include "sequences.h"
#include "session.h"
#include "signature.h"
#include "signature_text.h"
#include "tape.h"
#include "tensors.h"
#include "text.h"
#include "walk.h"

#endif  // FASTOPS_CPP_DEFINITIONS_H_
