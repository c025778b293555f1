// Merging by pointer: two lists in persistent memory become one, and no pair is copied. Only the pointers in
// the towers change. (MioDB: Duan, Yao, Liu and others, ASPLOS 2023, "zero-copy compaction". Also ListDB, Kim
// and others, OSDI 2022.)
//
// The nodes of the newer list move to the older one, in the order of their keys. Readers search the newer
// list first. So they find a node in one of the two, whenever it moves. Of a key with several versions the
// oldest moves first: the older list never has a version that is newer than one left behind.
//
// A version that nobody can see any more goes to a third list, the grave. There it waits until no cursor can
// stand on it, and is freed like a list that is not needed.
#include "lsm/node.hpp"

#include <algorithm>

namespace lsm
{

// The versions of lists are odd while this lives.
class Memtable::Moving
{
  public:
    Moving(Memtable &newer, Memtable &older, std::atomic<uint64_t> &moves)
        : newer_(newer), older_(older), hold_(newer.moving_, older.moving_)
    {
        newer_.version_.fetch_add(1, std::memory_order_acq_rel);
        older_.version_.fetch_add(1, std::memory_order_acq_rel);
        moves.fetch_add(1, std::memory_order_release);
    }
    ~Moving()
    {
        newer_.version_.fetch_add(1, std::memory_order_release);
        older_.version_.fetch_add(1, std::memory_order_release);
    }
    Moving(const Moving &) = delete;

  private:
    Memtable &newer_, &older_;
    std::scoped_lock<std::mutex, std::mutex> hold_;
};

// Take a node out of this list. `before`: the nodes before it, as first_from() finds them.
void Memtable::unlink(Node *const *before, Node *node)
{
    for (unsigned level = node->height; level-- > 0;) {
        memory_->announce(&before[level]->next[level], sizeof node->next[level]);
        before[level]->next[level].store(node->after(level), std::memory_order_release);
    }
    memory_->announce(node->next, node->height * sizeof node->next[0]);
}

// Nobody searches a grave, so it is no list in order.
void Memtable::bury(Node *node, Memtable &from)
{
    from.memory_->hand_over(*memory_, node->bytes() + node->value_bytes);
    memory_->announce(&head_->next[0], sizeof head_->next[0]);
    node->next[0].store(head_->after(0), std::memory_order_release);
    head_->next[0].store(node, std::memory_order_release);
}

void Memtable::warm(const Memtable &newer, unsigned count) const
{
    Node *finger[height_max];
    std::fill(finger, finger + height_max, head_);
    for (const Node *node = newer.head_->after(0); node && count > 0;
         node = node->after(0), count--) {
        go_on(node->key(), finger);
        __builtin_prefetch(node->after(0));
        may_have(user_key(node->key()));
    }
}

void Memtable::move_nodes(Memtable &newer, Memtable &older, Memtable &grave, Sequence oldest,
                          unsigned most, std::atomic<uint64_t> &moves)
{
    const Moving moving(newer, older, moves);
    const auto is_same_key = [](const Node *a, const Node *b) {
        return a && user_key(a->key()) == user_key(b->key());
    };
    unsigned n = 0; // have moved
    // Bury the versions of a key that stand behind `before`. False: too many have moved.
    const auto bury_versions = [&](Memtable &list, Node *const *before, const Node *of) {
        for (Node *old; is_same_key(old = before[0]->after(0), of); n++) {
            if (n >= most)
                return false;
            list.unlink(before, old);
            grave.bury(old, list);
        }
        return true;
    };
    Node *place[height_max]; // a finger: nodes move in the order of their keys
    std::fill(place, place + height_max, older.head_);
    for (; n < most; n++) {
        Node *first = newer.head_->after(0), *node = first, *before[height_max];
        if (!first)
            return;
        // The version that a read at `oldest` sees, or else the oldest one; and then what it hides.
        std::fill(before, before + height_max, newer.head_);
        if (sequence_of(first->key()) > oldest)
            node = newer.go_on(search_key(user_key(first->key()), oldest), before);
        const bool hides = is_same_key(node, first);
        if (!hides) {
            node = before[0];
            newer.first_from(node->key(), before);
        }
        Node *behind[height_max]; // the nodes before the next one
        std::copy(before, before + height_max, behind);
        std::fill(behind, behind + node->height, node);
        if (!bury_versions(newer, behind, node))
            return;
        older.go_on(node->key(), place);
        if (hides && !bury_versions(older, place, node))
            return;
        newer.unlink(before, node);
        const Node *at = place[0]->after(0);
        if (at && at->key() == node->key()) { // an interrupted move has left this version in both
            grave.bury(node, newer);
        } else {
            older.link_behind(place, node);
            newer.memory_->hand_over(*older.memory_, node->bytes() + node->value_bytes);
        }
    }
}

} // namespace lsm
