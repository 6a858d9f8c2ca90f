// A hash table of numbers.
#ifndef FASTOPS_CPP_NUMBER_TABLE_H_
#define FASTOPS_CPP_NUMBER_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fastops {

// A hash table from integers to integers that is emptied in constant time.
// The tables of a thread outlive walks, which would spend most of their time on making them.
class NumberTable {
 public:
  struct Slot {
    int64_t key;
    uint64_t round = 0;  // in which the slot was filled
    int64_t value;
    bool flag;  // the user's; false at first
  };

  void Clear() {
    ++round_;
    size_ = 0;
  }
  // Empties the table, and gives memory back if it is large.
  void Trim() {
    Clear();
    if (slots_.size() > kMostKept) std::vector<Slot>().swap(slots_);
  }
  // The slot of a key, and whether it is new: then it has the value. The slot stays where it is
  // until another key is added.
  std::pair<Slot*, bool> Add(int64_t key, int64_t value) {
    if (2 * ++size_ > slots_.size()) Grow();
    Slot* slot = Place(key);
    if (slot->round == round_) {
      --size_;
      return {slot, false};
    }
    *slot = {key, round_, value, false};
    return {slot, true};
  }
  // Null for a key that is not in the table.
  Slot* Find(int64_t key) {
    if (size_ == 0) return nullptr;
    Slot* slot = Place(key);
    return slot->round == round_ ? slot : nullptr;
  }

 private:
  static constexpr size_t kMostKept = 1 << 14;

  Slot* Place(int64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t at = (static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u) >> 32 & mask;
    while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & mask;
    return &slots_[at];
  }
  void Grow() {
    std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.round == round_) *Place(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_;
  uint64_t round_ = 1;
  size_t size_ = 0;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_NUMBER_TABLE_H_
