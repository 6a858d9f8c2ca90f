// Devices for tests, which TensorFlow loads like a vendor's plugin: two devices of a new type, with
// memory that the host cannot access, and streams that lag behind.

#include <cstdlib>
#include <cstring>

#include "memory.h"
#include "stream.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

namespace fastops_test {
namespace {

Memory& Of(const SP_Device* device) { return MemoryOf(device->ordinal); }

// Copies and fills fail once the device has a fault. This reports the fault to the host.
bool Works(int device, TF_Status* status) {
  const std::string fault = FaultOf(device);
  if (fault.empty()) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    TF_SetStatus(status, TF_INTERNAL, ("the device has a fault: " + fault).c_str());
  }
  return fault.empty();
}

void Allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = Of(device).Allocate(size);
  memory->size = memory->opaque == nullptr ? 0 : size;
}

void Deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  Of(device).Free(memory->opaque);
}

void* AllocateHost(const SP_Device*, uint64_t size) {
  return std::aligned_alloc(256, (size + 255) / 256 * 256);
}
void DeallocateHost(const SP_Device*, void* memory) { std::free(memory); }

TF_Bool GetStats(const SP_Device* device, SP_AllocatorStats* stats) {
  std::memset(stats, 0, sizeof(*stats));
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = Of(device).allocated();
  stats->bytes_in_use = Of(device).live_bytes();
  return 1;
}

TF_Bool GetUsage(const SP_Device* device, int64_t* free, int64_t* total) {
  *total = Memory::kSize;
  *free = Memory::kSize - Of(device).live_bytes();
  return 1;
}

void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status*) {
  *stream = new SP_Stream_st(device->ordinal);
}
void DestroyStream(const SP_Device*, SP_Stream stream) { delete stream; }

void CreateDependency(const SP_Device*, SP_Stream dependent, SP_Stream other, TF_Status*) {
  dependent->EnqueueAtOnce([moment = other->Record()] { moment->Wait(); });
}

void GetStreamStatus(const SP_Device*, SP_Stream, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

void CreateEvent(const SP_Device*, SP_Event* event, TF_Status*) { *event = new SP_Event_st; }
void DestroyEvent(const SP_Device*, SP_Event event) { delete event; }

SE_EventStatus GetEventStatus(const SP_Device*, SP_Event event) {
  const auto recorded = event->Recorded();
  return recorded == nullptr || recorded->IsReached() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}

void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  std::lock_guard<std::mutex> lock(event->mutex);
  event->recorded = stream->Record();
}

void WaitForEvent(const SP_Device* const, SP_Stream stream, SP_Event event, TF_Status* const) {
  if (const auto recorded = event->Recorded()) {
    stream->EnqueueAtOnce([recorded] { recorded->Wait(); });
  }
}

void BlockHostForEvent(const SP_Device*, SP_Event event, TF_Status*) {
  if (const auto recorded = event->Recorded()) recorded->Wait();
}

void BlockHostUntilDone(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  stream->Record()->Wait();
  Works(device->ordinal, status);
}

void Synchronize(const SP_Device* device, TF_Status* status) {
  SynchronizeAll();
  Works(device->ordinal, status);
}

struct Timer {
  uint64_t nanoseconds;
};
void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status*) {
  *timer = reinterpret_cast<SP_Timer>(new Timer{0});
}
void DestroyTimer(const SP_Device*, SP_Timer timer) { delete reinterpret_cast<Timer*>(timer); }
void StartOrStopTimer(const SP_Device*, SP_Stream, SP_Timer, TF_Status*) {}
uint64_t Nanoseconds(SP_Timer timer) { return reinterpret_cast<Timer*>(timer)->nanoseconds; }

void CopyToHost(const SP_Device* device, SP_Stream stream, void* to,
                const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  if (!Works(device->ordinal, status)) return;
  Count("copy to the host");
  CheckAlive(from->opaque, size);
  stream->Enqueue([to, from = from->opaque, size] { std::memcpy(to, Own(from), size); });
}

void CopyFromHost(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
                  const void* from, uint64_t size, TF_Status* status) {
  if (!Works(device->ordinal, status)) return;
  Count("copy from the host");
  CheckAlive(to->opaque, size);
  stream->Enqueue([to = to->opaque, from, size] { std::memcpy(Own(to), from, size); });
}

void CopyWithin(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
                const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  if (!Works(device->ordinal, status)) return;
  const bool same =
      MemoryOf(device->ordinal).Has(to->opaque) && MemoryOf(device->ordinal).Has(from->opaque);
  Count(same ? "copy within" : "copy between");
  CheckAlive(from->opaque, size);
  CheckAlive(to->opaque, size);
  stream->Enqueue(
      [to = to->opaque, from = from->opaque, size] { std::memmove(Own(to), Own(from), size); });
}

// These three functions wait for all work that was given to the streams before.
void CopyToHostNow(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from,
                   uint64_t size, TF_Status* status) {
  SynchronizeAll();
  if (!Works(device->ordinal, status)) return;
  Count("copy to the host");
  CheckAlive(from->opaque, size);
  std::memcpy(to, Own(from->opaque), size);
}

void CopyFromHostNow(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from,
                     uint64_t size, TF_Status* status) {
  SynchronizeAll();
  if (!Works(device->ordinal, status)) return;
  Count("copy from the host");
  CheckAlive(to->opaque, size);
  std::memcpy(Own(to->opaque), from, size);
}

void CopyWithinNow(const SP_Device* device, SP_DeviceMemoryBase* to,
                   const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  SynchronizeAll();
  if (!Works(device->ordinal, status)) return;
  Count("copy within");
  CheckAlive(from->opaque, size);
  CheckAlive(to->opaque, size);
  std::memmove(Own(to->opaque), Own(from->opaque), size);
}

void Set(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* place, uint8_t pattern,
         uint64_t size, TF_Status* status) {
  if (!Works(device->ordinal, status)) return;
  CheckAlive(place->opaque, size);
  stream->Enqueue(
      [place = place->opaque, pattern, size] { std::memset(Own(place), pattern, size); });
}

void SetZero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* place, uint64_t size,
             TF_Status* status) {
  Set(device, stream, place, 0, size, status);
}

void SetWords(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* place,
              uint32_t pattern, uint64_t size, TF_Status* status) {
  if (!Works(device->ordinal, status)) return;
  CheckAlive(place->opaque, size);
  stream->Enqueue([place = place->opaque, pattern, size] {
    auto* words = reinterpret_cast<uint32_t*>(Own(place));
    for (uint64_t i = 0; i < size / sizeof(pattern); ++i) words[i] = pattern;
  });
}

TF_Bool CallHost(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn callback, void* argument) {
  stream->Enqueue([callback, argument] {
    TF_Status* status = TF_NewStatus();
    callback(argument, status);
    TF_DeleteStatus(status);
  });
  return 1;
}

void CountDevices(const SP_Platform*, int* count, TF_Status*) { *count = kDevices; }

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status*) {
  SP_Device* device = params->device;
  device->struct_size = SP_DEVICE_STRUCT_SIZE;
  device->ordinal = params->ordinal;
  device->hardware_name = "the device of fastops' tests";
  device->device_vendor = "fastops";
  device->pci_bus_id = params->ordinal == 0 ? "0000:00:01.0" : "0000:00:02.0";
}

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status*) {
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
}

void CreateTimerFns(const SP_Platform*, SP_TimerFns* fns, TF_Status*) {
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = Nanoseconds;
}

void CreateExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status*) {
  SP_StreamExecutor* executor = params->stream_executor;
  executor->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  executor->allocate = Allocate;
  executor->deallocate = Deallocate;
  executor->host_memory_allocate = AllocateHost;
  executor->host_memory_deallocate = DeallocateHost;
  executor->get_allocator_stats = GetStats;
  executor->device_memory_usage = GetUsage;
  executor->create_stream = CreateStream;
  executor->destroy_stream = DestroyStream;
  executor->create_stream_dependency = CreateDependency;
  executor->get_stream_status = GetStreamStatus;
  executor->create_event = CreateEvent;
  executor->destroy_event = DestroyEvent;
  executor->get_event_status = GetEventStatus;
  executor->record_event = RecordEvent;
  executor->wait_for_event = WaitForEvent;
  executor->create_timer = CreateTimer;
  executor->destroy_timer = DestroyTimer;
  executor->start_timer = StartOrStopTimer;
  executor->stop_timer = StartOrStopTimer;
  executor->memcpy_dtoh = CopyToHost;
  executor->memcpy_htod = CopyFromHost;
  executor->memcpy_dtod = CopyWithin;
  executor->sync_memcpy_dtoh = CopyToHostNow;
  executor->sync_memcpy_htod = CopyFromHostNow;
  executor->sync_memcpy_dtod = CopyWithinNow;
  executor->block_host_for_event = BlockHostForEvent;
  executor->block_host_until_done = BlockHostUntilDone;
  executor->synchronize_all_activity = Synchronize;
  executor->mem_zero = SetZero;
  executor->memset = Set;
  executor->memset32 = SetWords;
  executor->host_callback = CallHost;
}

template <typename... Arguments>
void Nothing(Arguments...) {}

}  // namespace
}  // namespace fastops_test

extern "C" {

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
  using namespace fastops_test;
  const char* pooled = std::getenv("FASTOPS_TEST_DEVICE_POOL");
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "FASTOPS_TEST_PLATFORM";
  params->platform->type = "FASTOPS_TEST";
  params->platform->supports_unified_memory = 0;
  // Without TensorFlow's pool, each tensor has its own block, which is freed with the tensor.
  params->platform->use_bfc_allocator = pooled != nullptr && *pooled == '1';
  params->platform->force_memory_growth = 1;
  params->platform_fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  params->platform_fns->get_device_count = CountDevices;
  params->platform_fns->create_device = CreateDevice;
  params->platform_fns->destroy_device = Nothing;
  params->platform_fns->create_device_fns = CreateDeviceFns;
  params->platform_fns->destroy_device_fns = Nothing;
  params->platform_fns->create_stream_executor = CreateExecutor;
  params->platform_fns->destroy_stream_executor = Nothing;
  params->platform_fns->create_timer_fns = CreateTimerFns;
  params->platform_fns->destroy_timer_fns = Nothing;
  params->destroy_platform = Nothing;
  params->destroy_platform_fns = Nothing;
}

// The interface for tests.
void fastops_test_hold(int held) { fastops_test::Hold(held != 0); }
void fastops_test_delay(int most) { fastops_test::SetDelay(most); }
void fastops_test_synchronize() { fastops_test::SynchronizeAll(); }
const char* fastops_test_counts() {
  static thread_local std::string text;
  text = fastops_test::Counts();
  return text.c_str();
}
int64_t fastops_test_live(int device) { return fastops_test::MemoryOf(device).live(); }
int64_t fastops_test_allocated(int device) { return fastops_test::MemoryOf(device).allocated(); }
int64_t fastops_test_last_block(int device) { return fastops_test::MemoryOf(device).last(); }
void fastops_test_mend(int device) { fastops_test::SetFault(device, ""); }
void fastops_test_free(void* block, int device) { fastops_test::MemoryOf(device).Free(block); }

}  // extern "C"
