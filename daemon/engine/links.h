// A doubly linked list through members of its items: no allocation, and removal from the middle in no time. An item is
// in at most one list per Links member. Not thread-safe.
#ifndef UBD_ENGINE_LINKS_H_
#define UBD_ENGINE_LINKS_H_

namespace ubd {

template <class Item>
struct Links {
  Item* before = nullptr;
  Item* after = nullptr;
  bool listed = false;
};

template <class Item, Links<Item> Item::*kLinks>
class LinkedList {
 public:
  bool empty() const { return first_ == nullptr; }
  Item* first() const { return first_; }
  Item* After(Item* item) const { return (item->*kLinks).after; }

  void PushBack(Item* item) {
    (item->*kLinks) = {last_, nullptr, true};
    (last_ != nullptr ? (last_->*kLinks).after : first_) = item;
    last_ = item;
  }
  // Nothing happens to what is not in the list.
  void Remove(Item* item) {
    Links<Item>& links = item->*kLinks;
    if (!links.listed) return;
    (links.before != nullptr ? (links.before->*kLinks).after : first_) = links.after;
    (links.after != nullptr ? (links.after->*kLinks).before : last_) = links.before;
    links = {};
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
};

}  // namespace ubd

#endif  // UBD_ENGINE_LINKS_H_
