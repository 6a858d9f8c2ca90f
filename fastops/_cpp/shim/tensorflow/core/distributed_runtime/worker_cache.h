// Declarations alone, see shim/README.md.
#ifndef FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_WORKER_CACHE_H_
#define FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_WORKER_CACHE_H_

namespace tensorflow {

class WorkerCacheInterface;
class WorkerInterface;

}  // namespace tensorflow

#endif  // FASTOPS_CPP_SHIM_TENSORFLOW_CORE_DISTRIBUTED_RUNTIME_WORKER_CACHE_H_
