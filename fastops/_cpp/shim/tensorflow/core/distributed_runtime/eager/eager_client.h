// Declarations alone, see shim/README.md.
#ifndef FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_EAGER_EAGER_CLIENT_H_
#define FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_EAGER_EAGER_CLIENT_H_

namespace tensorflow {
namespace eager {

class EagerClient;
class EagerClientCache;

}  // namespace eager
}  // namespace tensorflow

#endif  // FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_EAGER_EAGER_CLIENT_H_
