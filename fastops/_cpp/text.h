// Turns a status into a Python exception.
#ifndef FASTOPS_CPP_TEXT_H_
#define FASTOPS_CPP_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/python/eager/pywrap_tfe.h"

namespace fastops {

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Raises the exception that TensorFlow raises for the status of an op, and returns -1. `prefix`
// goes before the message.
inline int RaiseNotOk(const absl::Status& status, const std::string& prefix,
                      const std::string& op_name) {
  // TensorFlow passes the message as a C string, so it ends at the first zero byte. It has to be
  // UTF-8.
  const std::string message = Message(status).c_str();
  const std::string text = absl::StrCat(prefix, message, " [Op:", op_name, "]");
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), text.size(), nullptr);
  if (decoded == nullptr) return -1;
  Py_DECREF(decoded);
  absl::Status told(status.code(), text);
  status.ForEachPayload([&told](absl::string_view type, const absl::Cord& payload) {
    told.SetPayload(type, payload);
  });
  return MaybeRaiseExceptionFromStatus(told, /*exception=*/nullptr);
}

}  // namespace fastops

#endif  // FASTOPS_CPP_TEXT_H_
