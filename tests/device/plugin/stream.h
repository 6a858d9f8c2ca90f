// Streams and events of the device. Each stream has a thread that does its work in order.
#ifndef FASTOPS_TESTS_DEVICE_STREAM_H_
#define FASTOPS_TESTS_DEVICE_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace fastops_test {

// A point in the work of a stream, which is reached at some time. Each record of an event makes a
// new one.
class Moment {
 public:
  void Reach();
  bool IsReached();
  void Wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
};

}  // namespace fastops_test

struct SP_Event_st {
  std::mutex mutex;
  std::shared_ptr<fastops_test::Moment> recorded;  // null: never recorded

  std::shared_ptr<fastops_test::Moment> Recorded() {
    std::lock_guard<std::mutex> lock(mutex);
    return recorded;
  }
};

struct SP_Stream_st {
  explicit SP_Stream_st(int device);
  ~SP_Stream_st();

  // Gives work to the stream, which does it at some later time.
  void Enqueue(std::function<void()> work) { Put({std::move(work), true}); }
  // Gives work to the stream that is not delayed: synchronization between streams.
  void EnqueueAtOnce(std::function<void()> work) { Put({std::move(work), false}); }
  // Returns a moment that is reached when all work given so far is done.
  std::shared_ptr<fastops_test::Moment> Record();

  const int device;

 private:
  struct Task {
    std::function<void()> work;
    bool slow;
  };

  void Put(Task task);
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ending_ = false;
  uint32_t chance_;
  std::thread thread_;
};

namespace fastops_test {

// Does work when all streams have finished the work given to them so far.
void AfterAllStreams(std::function<void()> work);
// Waits until all streams have finished the work given to them so far.
void SynchronizeAll();

// Stops the streams before work that they have not begun, or lets them continue.
void Hold(bool held);
// Sets how long work may be delayed, in microseconds.
void SetDelay(int most);

// The error that a device had after the call had returned success to the host; "" if none.
std::string FaultOf(int device);
void SetFault(int device, const std::string& what);

// Counts an event, by name.
void Count(const std::string& what);
// Returns all counts, a line for each: the number and the name.
std::string Counts();

}  // namespace fastops_test

#endif  // FASTOPS_TESTS_DEVICE_STREAM_H_
