#include "lsm/parallel.hpp"

#include <chrono>

namespace lsm
{
namespace
{

constexpr uint32_t try_every = 128; // searches
constexpr double weight = 1.0 / 16; // of a search in the average
constexpr double clearly = 7.0 / 8; // less may be chance

std::optional<Table::Found> first_found(const std::vector<const Table *> &tables,
                                        std::string_view user_key, Sequence sequence)
{
    for (const Table *table : tables)
        if (auto found = table->get(user_key, sequence))
            return found;
    return {};
}

} // namespace

struct ParallelReader::Search {
    const std::vector<const Table *> &tables;
    std::string_view user_key;
    Sequence sequence;
    std::atomic<size_t> next = 0; // table to search
    std::atomic<size_t> best;     // the first table that is known to have the key, or to be damaged
    unsigned workers = 0;         // that are in it; under the lock
    std::vector<std::optional<Table::Found>> found;
    std::vector<std::exception_ptr> errors;

    Search(const std::vector<const Table *> &tables, std::string_view key, Sequence sequence)
        : tables(tables), user_key(key), sequence(sequence), best(tables.size()),
          found(tables.size()), errors(tables.size())
    {
    }

    void take_part()
    {
        for (size_t i; (i = next.fetch_add(1)) < best;) {
            try {
                found[i] = tables[i]->get(user_key, sequence);
            } catch (...) {
                errors[i] = std::current_exception();
            }
            if (!found[i] && !errors[i])
                continue;
            for (size_t known = best; i < known && !best.compare_exchange_weak(known, i);)
                ;
        }
    }
};

ParallelReader::ParallelReader(unsigned workers)
{
    for (unsigned i = 0; i < workers; i++)
        workers_.emplace_back([this] { serve(); });
}

ParallelReader::~ParallelReader()
{
    {
        std::lock_guard guard(lock_);
        stopping_ = true;
    }
    wanted_.notify_all();
    for (std::thread &worker : workers_)
        worker.join();
}

void ParallelReader::serve()
{
    std::unique_lock guard(lock_);
    for (;;) {
        wanted_.wait(guard, [&] { return stopping_ || search_; });
        if (stopping_)
            return;
        Search &search = *search_;
        search.workers++;
        if (search.workers == workers_.size() || search.next >= search.best)
            search_ = nullptr;
        guard.unlock();
        search.take_part();
        guard.lock();
        if (search_ == &search)
            search_ = nullptr;
        search.workers--;
        left_.notify_all();
    }
}

std::optional<Table::Found> ParallelReader::search_together(Search &search)
{
    bool is_joined = false;
    {
        std::lock_guard guard(lock_);
        is_joined = !search_; // else the workers have another reader's search
        if (is_joined)
            search_ = &search;
    }
    if (is_joined)
        wanted_.notify_all();
    search.take_part();
    if (is_joined) {
        std::unique_lock guard(lock_);
        if (search_ == &search)
            search_ = nullptr;
        left_.wait(guard, [&] { return search.workers == 0; });
    }
    const size_t best = search.best;
    if (best == search.tables.size())
        return {};
    if (search.errors[best])
        std::rethrow_exception(search.errors[best]);
    return std::move(search.found[best]);
}

std::optional<Table::Found> ParallelReader::search(const std::vector<const Table *> &tables,
                                                   std::string_view user_key, Sequence sequence)
{
    using std::chrono::steady_clock;
    if (tables.size() < 2)
        return first_found(tables, user_key, sequence);
    const bool together = choose();
    const auto start = steady_clock::now();
    std::optional<Table::Found> found;
    if (together) {
        Search search(tables, user_key, sequence);
        found = search_together(search);
    } else {
        found = first_found(tables, user_key, sequence);
    }
    note(together, std::chrono::duration<double, std::nano>(steady_clock::now() - start).count());
    return found;
}

bool ParallelReader::choose()
{
    const bool is_faster = together_ns_ < clearly * alone_ns_;
    return count_.fetch_add(1) % try_every == 0 ? !is_faster : is_faster;
}

void ParallelReader::note(bool together, double ns)
{
    std::atomic<double> &average = together ? together_ns_ : alone_ns_;
    const double old = average;
    average = old == 0 ? ns : old + (ns - old) * weight; // a lost update does no harm
}

} // namespace lsm
