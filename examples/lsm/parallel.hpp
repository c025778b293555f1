// Reading tables with the help of other threads: they search the older tables while the reader searches the
// newest. The answer of the newest table wins, and then nobody begins another search.
// (NoveLSM, Kannan et al., USENIX ATC 2018, section 4.3.)
//
// To wake a thread takes longer than to search a table whose blocks are in memory. So the store measures both
// ways, and takes the faster one. Now and then it tries the other, as the reads may have changed.
#ifndef EXAMPLES_LSM_PARALLEL_HPP
#define EXAMPLES_LSM_PARALLEL_HPP

#include "lsm/table.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace lsm
{

// Thread-safe.
class ParallelReader
{
  public:
    explicit ParallelReader(unsigned workers);
    ~ParallelReader();

    // What the first of `tables`, which go from new to old, has of the key. They are searched in the way that
    // has been faster lately.
    std::optional<Table::Found> search(const std::vector<const Table *> &tables,
                                       std::string_view user_key, Sequence sequence);

  private:
    struct Search;

    void serve();
    std::optional<Table::Found> search_together(Search &search);
    bool choose();
    void note(bool together, double ns);

    std::mutex lock_;
    std::condition_variable wanted_, left_;
    Search *search_ = nullptr; // that workers may join
    bool stopping_ = false;
    std::vector<std::thread> workers_;

    std::atomic<double> alone_ns_{0}, together_ns_{0}; // of late, on average
    std::atomic<uint32_t> count_{0};
};

} // namespace lsm

#endif
