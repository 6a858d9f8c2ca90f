#include "stream.h"

#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "memory.h"

namespace fastops_test {

namespace {

// The state that all streams share. It is never destroyed, since streams run until the process
// ends.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<SP_Stream_st*> streams;
  bool held = false;
  std::atomic<int> delay{60};
  std::atomic<uint32_t> made{0};
  std::string faults[kDevices];
  std::map<std::string, int64_t> counts;
};

Shared& All() {
  static auto* shared = new Shared;
  return *shared;
}

}  // namespace

void Moment::Reach() {
  std::lock_guard<std::mutex> lock(mutex_);
  reached_ = true;
  changed_.notify_all();
}

bool Moment::IsReached() {
  std::lock_guard<std::mutex> lock(mutex_);
  return reached_;
}

void Moment::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
}

void AfterAllStreams(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(All().mutex);  // no stream is added or removed meanwhile
  if (All().streams.empty()) return work();
  auto left = std::make_shared<std::atomic<size_t>>(All().streams.size());
  auto shared = std::make_shared<std::function<void()>>(std::move(work));
  for (SP_Stream_st* stream : All().streams) {
    stream->EnqueueAtOnce([left, shared] {
      if (--*left == 0) (*shared)();
    });
  }
}

void SynchronizeAll() {
  auto moment = std::make_shared<Moment>();
  AfterAllStreams([moment] { moment->Reach(); });
  moment->Wait();
}

void Hold(bool held) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().held = held;
  All().changed.notify_all();
}

void SetDelay(int most) { All().delay = most; }

std::string FaultOf(int device) {
  std::lock_guard<std::mutex> lock(All().mutex);
  return All().faults[device];
}

void SetFault(int device, const std::string& what) {
  std::lock_guard<std::mutex> lock(All().mutex);
  if (what.empty() || All().faults[device].empty()) All().faults[device] = what;
}

void Count(const std::string& what) {
  std::lock_guard<std::mutex> lock(All().mutex);
  ++All().counts[what];
}

std::string Counts() {
  std::lock_guard<std::mutex> lock(All().mutex);
  std::string text;
  for (const auto& [what, count] : All().counts) text += std::to_string(count) + " " + what + "\n";
  return text;
}

}  // namespace fastops_test

using fastops_test::All;
using fastops_test::Moment;

SP_Stream_st::SP_Stream_st(int device)
    : device(device), chance_(++All().made * 2654435761u), thread_([this] { Serve(); }) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().streams.insert(this);
}

SP_Stream_st::~SP_Stream_st() {
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    All().streams.erase(this);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<Moment> SP_Stream_st::Record() {
  auto moment = std::make_shared<Moment>();
  EnqueueAtOnce([moment] { moment->Reach(); });
  return moment;
}

void SP_Stream_st::Put(Task task) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void SP_Stream_st::Serve() {
  for (;;) {
    Task task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    {
      std::unique_lock<std::mutex> lock(All().mutex);
      All().changed.wait(lock, [] { return !All().held; });
    }
    const int delay = All().delay;
    chance_ = chance_ * 1664525u + 1013904223u;
    if (task.slow && delay > 0 && chance_ >> 30 == 0) {  // one in four
      std::this_thread::sleep_for(std::chrono::microseconds((chance_ >> 8) % delay));
    }
    task.work();
  }
}
