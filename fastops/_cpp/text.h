// What of a status a Python exception carries.
#ifndef FASTOPS_CPP_TEXT_H_
#define FASTOPS_CPP_TEXT_H_

#include <string>

#include "absl/status/status.h"

namespace fastops {

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace fastops

#endif  // FASTOPS_CPP_TEXT_H_
