// A node, its tower, its key and its value are one piece of memory. A search takes a logarithmic number
// of steps.
#include "lsm/memtable.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{
namespace
{

constexpr unsigned height_max = 12, branching = 4; // good for 16 million nodes
constexpr size_t chunk_bytes = 64 << 10;

} // namespace

struct Memtable::Node {
    uint32_t key_bytes, value_bytes;
    const char *text;            // the key, then the value
    std::atomic<Node *> next[1]; // as many as it is high

    std::string_view key() const { return {text, key_bytes}; }
    std::string_view value() const { return {text + key_bytes, value_bytes}; }
    Node *after(unsigned level) const { return next[level].load(std::memory_order_acquire); }
};

Memtable::Memtable()
{
    size_t bytes = sizeof(Node) + (height_max - 1) * sizeof(std::atomic<Node *>);
    head_ = new (allocate(bytes)) Node{};
    for (unsigned level = 1; level < height_max; level++)
        new (&head_->next[level]) std::atomic<Node *>(nullptr);
}

Memtable::~Memtable() = default;

char *Memtable::allocate(size_t bytes)
{
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > static_cast<size_t>(end_ - free_)) {
        size_t size = std::max(bytes, chunk_bytes);
        chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
        free_ = chunks_.back().get();
        end_ = free_ + size;
        bytes_.fetch_add(size, std::memory_order_relaxed);
    }
    return std::exchange(free_, free_ + bytes);
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
        while ((next = node->after(level)) && compare(next->key(), key) < 0)
            node = next;
        if (before)
            before[level] = node;
        if (level == 0)
            return next;
    }
    return nullptr;
}

void Memtable::add(Sequence sequence, Kind kind, std::string_view user_key, std::string_view value)
{
    unsigned height = draw_height();
    size_t node_bytes = sizeof(Node) + (height - 1) * sizeof(std::atomic<Node *>);
    size_t key_bytes = user_key.size() + tag_bytes;
    char *memory = allocate(node_bytes + key_bytes + value.size()), *text = memory + node_bytes;
    uint64_t tag = tag_of(sequence, kind);
    std::copy(user_key.begin(), user_key.end(), text);
    memcpy(text + user_key.size(), &tag, sizeof tag);
    std::copy(value.begin(), value.end(), text + key_bytes);
    auto *node = new (memory)
        Node{static_cast<uint32_t>(key_bytes), static_cast<uint32_t>(value.size()), text, {}};

    Node *before[height_max];
    std::fill(before, before + height_max, head_);
    first_from(node->key(), before);
    if (height > height_.load(std::memory_order_relaxed))
        height_.store(
            height,
            std::memory_order_relaxed); // a reader that sees it early finds NULL in the head
    for (unsigned level = 0; level < height; level++) {
        new (&node->next[level]) std::atomic<Node *>(before[level]->after(level));
        before[level]->next[level].store(node, std::memory_order_release);
    }
}

std::optional<Memtable::Found> Memtable::get(std::string_view key, Sequence sequence) const
{
    Node *node = first_from(search_key(key, sequence), nullptr);
    if (!node || user_key(node->key()) != key)
        return {};
    return Found{kind_of(node->key()), node->value()};
}

bool Memtable::empty() const
{
    return !head_->after(0);
}

class MemtableCursor : public Cursor
{
  public:
    explicit MemtableCursor(const Memtable &table) : table_(table) {}
    bool valid() const override { return node_; }
    void seek_to_first() override { node_ = table_.head_->after(0); }
    void seek(std::string_view key) override { node_ = table_.first_from(key, nullptr); }
    void next() override { node_ = node_->after(0); }
    std::string_view key() const override { return node_->key(); }
    std::string_view value() const override { return node_->value(); }

  private:
    const Memtable &table_;
    Memtable::Node *node_ = nullptr;
};

std::unique_ptr<Cursor> Memtable::cursor() const
{
    return std::make_unique<MemtableCursor>(*this);
}

} // namespace lsm
