// A search takes a logarithmic number of steps.
#include "lsm/node.hpp"

#include <algorithm>

namespace lsm
{
namespace
{

constexpr unsigned branching = 4;

} // namespace

static_assert(key_max + tag_bytes < 1 << 24 && value_max <= UINT32_MAX);

Memtable::Memtable(size_t filter_bytes)
    : memory_(std::make_unique<HeapMemory>()), head_(make_head(*memory_)), height_(1)
{
    take_filter(std::make_shared<GrowingFilter>(filter_bytes));
}

Memtable::Memtable(std::unique_ptr<Memory> memory, Node *head, size_t filter_bytes)
    : memory_(std::move(memory)), head_(head), height_(height_max)
{
    take_filter(std::make_shared<GrowingFilter>(filter_bytes));
    while (height_ > 1 && !head_->after(height_ - 1))
        height_--;
    random_ += reinterpret_cast<uintptr_t>(this); // after a restart, other heights than before it
}

Memtable::Node *Memtable::make_head(Memory &memory)
{
    const size_t bytes = Node::bytes(height_max, 0);
    char *at = memory.allocate(bytes);
    memory.announce(at, bytes);
    auto *head = new (at) Node{0, 0, height_max, nullptr, {}};
    for (unsigned level = 1; level < height_max; level++)
        new (&head->next[level]) std::atomic<Node *>(nullptr);
    return head;
}

unsigned Memtable::draw_height()
{
    unsigned height = 1;
    for (; height < height_max; height++) {
        random_ ^= random_ << 13; // Marsaglia, Xorshift RNGs
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        if (random_ % branching != 0)
            break;
    }
    return height;
}

// The first node that is not before `key`. `before`, if it is not NULL, gets the node before it at each
// level.
Memtable::Node *Memtable::first_from(std::string_view key, Node **before) const
{
    Node *node = head_;
    for (unsigned level = height_.load(std::memory_order_relaxed); level-- > 0;) {
        Node *next;
        while ((next = node->after(level))) {
            // If `next` is too far, the search goes on with this one. Both are seldom in the cache, and
            // come at once.
            if (level > 0)
                __builtin_prefetch(node->after(level - 1));
            if (compare(next->key(), key) >= 0)
                break;
            node = next;
        }
        if (before)
            before[level] = node;
        if (level == 0)
            return next;
    }
    return nullptr;
}

Memtable::Node *Memtable::last() const
{
    Node *node = head_;
    for (unsigned level = height_.load(std::memory_order_relaxed); level-- > 0;)
        while (Node *next = node->after(level))
            node = next;
    return node == head_ ? nullptr : node;
}

Memtable::Node *Memtable::before(const Node *node) const
{
    Node *before[height_max];
    first_from(node->key(), before);
    return before[0] == head_ ? nullptr : before[0];
}

Memtable::Node *Memtable::make(std::string_view key, std::string_view value)
{
    const unsigned height = draw_height();
    const size_t bytes = Node::bytes(height, key.size());
    char *at = memory_->allocate(bytes), *text = nullptr;
    if (!value.empty()) {
        try {
            text = memory_->allocate(value.size());
        } catch (...) {
            memory_->release(at, bytes);
            throw;
        }
        memory_->announce(text, value.size());
        memcpy(text, value.data(), value.size());
    }
    memory_->announce(at, bytes);
    auto *node = new (at) Node{
        static_cast<uint32_t>(value.size()), static_cast<uint32_t>(key.size()), height, text, {}};
    for (unsigned level = 1; level < height; level++)
        new (&node->next[level]) std::atomic<Node *>(nullptr);
    memcpy(node->key_text(), key.data(), key.size());
    return node;
}

// Going up takes as many levels as a search from here needs. Once a level has led on, the node there is ahead
// of all that the finger has below.
Memtable::Node *Memtable::go_on(std::string_view key, Node **finger) const
{
    const auto step = [&](Node *node, unsigned level) {
        Node *next = node->after(level);
        return next && compare(next->key(), key) < 0 ? next : nullptr;
    };
    unsigned top = 0;
    while (top + 1 < height_.load(std::memory_order_relaxed) && step(finger[top], top))
        top++;
    Node *ahead = nullptr;
    for (unsigned level = top + 1; level-- > 0;) {
        Node *node = ahead ? ahead : finger[level];
        while (Node *next = step(node, level))
            ahead = node = next;
        finger[level] = node;
    }
    return finger[0]->after(0);
}

bool Memtable::link(Node *node)
{
    Node *before[height_max];
    std::fill(before, before + height_max, head_);
    const Node *at = first_from(node->key(), before);
    if (at && at->key() == node->key())
        return false;
    link_behind(before, node);
    return true;
}

void Memtable::link_behind(Node *const *before, Node *node)
{
    filter_.load(std::memory_order_relaxed)->add(user_key(node->key()));
    if (node->height > height_.load(std::memory_order_relaxed))
        height_.store(
            node->height,
            std::memory_order_relaxed); // a reader that sees it early finds NULL in the head
    for (unsigned level = 0; level < node->height; level++) {
        memory_->announce(&before[level]->next[level], sizeof node->next[level]);
        node->next[level].store(before[level]->after(level), std::memory_order_release);
        before[level]->next[level].store(node, std::memory_order_release);
    }
}

void Memtable::release(Node *node)
{
    if (node->text)
        memory_->release(const_cast<char *>(node->text), node->value_bytes);
    memory_->release(node, node->bytes());
}

unsigned Memtable::height(const Node *node)
{
    return node->height;
}

void Memtable::add(Sequence sequence, Kind kind, std::string_view user_key, std::string_view value)
{
    link(make(tagged(user_key, sequence, kind), value));
}

void Memtable::warm_first(const Node *head, unsigned most)
{
    for (const Node *node = head; node && most > 0; most--)
        node = node->after(0);
}

unsigned Memtable::free_first(Memory &memory, Node *head, unsigned most)
{
    unsigned n = 0;
    memory.announce(head, head->bytes());
    for (Node *node; n < most && (node = head->after(0)); n++) {
        for (unsigned level = 0; level < node->height; level++)
            head->next[level].store(node->after(level), std::memory_order_relaxed);
        if (node->text)
            memory.release(const_cast<char *>(node->text), node->value_bytes);
        memory.release(node, node->bytes());
    }
    return n;
}

std::shared_ptr<GrowingFilter> Memtable::take_filter(std::shared_ptr<GrowingFilter> filter)
{
    filter_.store(filter.get(), std::memory_order_release);
    std::swap(owned_filter_, filter);
    return filter;
}

std::shared_ptr<const void> Memtable::renew_filter(size_t bytes)
{
    auto filter = std::make_shared<GrowingFilter>(bytes);
    for (const Node *node = head_->after(0); node; node = node->after(0))
        filter->add(user_key(node->key()));
    return take_filter(std::move(filter));
}

// Search while no nodes move. `seen`: the list's version of that time.
template <class Search> Memtable::Node *Memtable::steady(uint64_t &seen, Search search) const
{
    for (;;) {
        const uint64_t version = version_.load(std::memory_order_acquire);
        if (version % 2 == 1) { // they are moving
            std::lock_guard wait(moving_);
            continue;
        }
        Node *found = search();
        if (version_.load(std::memory_order_relaxed) == version) {
            seen = version;
            return found;
        }
    }
}

std::optional<Memtable::Found> Memtable::get(std::string_view key, Sequence sequence) const
{
    if (!may_have(key))
        return {};
    uint64_t seen;
    const std::string from = search_key(key, sequence);
    const Node *node = steady(seen, [&] { return first_from(from, nullptr); });
    if (!node || user_key(node->key()) != key)
        return {};
    return Found{kind_of(node->key()), node->value()};
}

bool Memtable::empty() const
{
    return !head_->after(0);
}

// Its node may have moved to another list since, or have been taken out. Then it goes on from the node's key.
class MemtableCursor : public Cursor
{
  public:
    explicit MemtableCursor(const Memtable &table) : table_(table) {}
    bool valid() const override { return node_; }
    void seek_to_first() override
    {
        go([&] { return table_.head_->after(0); });
    }
    void seek_to_last() override
    {
        go([&] { return table_.last(); });
    }
    void seek(std::string_view key) override
    {
        go([&] { return table_.first_from(key, nullptr); });
    }
    void next() override
    {
        const uint64_t seen = seen_;
        go([&] {
            if (table_.version_.load(std::memory_order_acquire) == seen)
                return node_->after(0);
            Memtable::Node *next = table_.first_from(node_->key(), nullptr);
            return next && next->key() == node_->key() ? next->after(0) : next;
        });
    }
    void prev() override
    {
        go([&] { return table_.before(node_); });
    }
    std::string_view key() const override { return node_->key(); }
    std::string_view value() const override { return node_->value(); }

  private:
    template <class Search> void go(Search search) { node_ = table_.steady(seen_, search); }

    const Memtable &table_;
    Memtable::Node *node_ = nullptr;
    uint64_t seen_ = 0;
};

std::unique_ptr<Cursor> Memtable::cursor() const
{
    return std::make_unique<MemtableCursor>(*this);
}

} // namespace lsm
