// Streams and events of the device: a thread for each stream, which does its work in order.
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

// Something that is over at some time. Each record of an event is another one.
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
  std::shared_ptr<fastops_test::Moment> recorded;  // null: never

  std::shared_ptr<fastops_test::Moment> Recorded() {
    std::lock_guard<std::mutex> lock(mutex);
    return recorded;
  }
};

struct SP_Stream_st {
  explicit SP_Stream_st(int device);
  ~SP_Stream_st();

  // Gives it work: what a device does, at some later time.
  void Enqueue(std::function<void()> work) { Put({std::move(work), true}); }
  // Likewise what keeps the streams together, which no delay may hold up.
  void EnqueueAtOnce(std::function<void()> work) { Put({std::move(work), false}); }
  // A moment that is reached when all that it was given so far is done.
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

// Has something done when all streams have done what they were given so far.
void AfterAllStreams(std::function<void()> work);
// Waits until they have.
void SynchronizeAll();

// Holds the streams before whatever they have not begun, or lets them go on.
void Hold(bool held);
// How long work may be delayed, in microseconds.
void SetDelay(int most);

// What went wrong on a device after the host had been told that all was well; "" if nothing did.
std::string FaultOf(int device);
void SetFault(int device, const std::string& what);

// Counts something, by its name.
void Count(const std::string& what);
// All counts, a line for each: the number and the name.
std::string Counts();

}  // namespace fastops_test

#endif  // FASTOPS_TESTS_DEVICE_STREAM_H_
