// The write-back queue of an ordinary file, by itself: pages of home go to the file in the order in
// which they were first changed, however often the queue has moved down in its table.
#include "common/fixture.hpp"

extern "C" {
#include "backend/backend.h"
#include "base/bits.h"
}

#include <algorithm>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

class Queue
{
  public:
    explicit Queue(uint64_t pages) : pages_(pages), in_file_(pages), in_home_(pages)
    {
        test::write_file(path_, std::string(pages * PM_PAGE, 0));
        medium_.fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
        void *home =
            mmap(nullptr, pages * PM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, medium_.fd, 0);
        REQUIRE((medium_.fd >= 0 && home != MAP_FAILED));
        medium_.file = static_cast<char *>(home);
        REQUIRE(tables_open(&tables_, 64 * pages + 4 * PM_PAGE) == 0);
        REQUIRE(queue_create(&medium_, &tables_, pages * PM_PAGE) == 0);
        behind_ = static_cast<const char *>(tables_take(&tables_, PM_PAGE));
        queue_set_epoch(&medium_, epoch_);
    }
    ~Queue()
    {
        queue_destroy(&medium_);
        tables_close(&tables_);
        munmap(medium_.file, pages_ * PM_PAGE);
        close(medium_.fd);
    }
    Queue(const Queue &) = delete;

    // A commit changes the page.
    void change(uint64_t page)
    {
        char *at = medium_.file + page * PM_PAGE;
        *reinterpret_cast<uint64_t *>(at) = in_home_[page] = epoch_;
        medium_write_back(&medium_, at, sizeof(uint64_t));
        if (std::find(queued_.begin(), queued_.end(), page) == queued_.end())
            queued_.push_back(page);
        queue_set_epoch(&medium_, ++epoch_);
    }

    // A commit copies to what was free, and so to the file.
    void copy(uint64_t page)
    {
        char *at = medium_.file + page * PM_PAGE;
        in_file_[page] = in_home_[page] = epoch_;
        REQUIRE(medium_copy(&medium_, at, &epoch_, sizeof epoch_) == 0);
        REQUIRE(*reinterpret_cast<uint64_t *>(at) == epoch_);
        queue_set_epoch(&medium_, ++epoch_);
    }

    // The same, many pages at once, each with other contents.
    void copy_all()
    {
        std::string from(pages_ * PM_PAGE, 0);
        for (uint64_t page = 0; page < pages_; page++) {
            in_file_[page] = in_home_[page] = epoch_ + page;
            memcpy(&from[page * PM_PAGE], &in_home_[page], sizeof(uint64_t));
        }
        REQUIRE(medium_copy(&medium_, medium_.file, from.data(), from.size()) == 0);
        REQUIRE(memcmp(medium_.file, from.data(), from.size()) == 0);
        queue_set_epoch(&medium_, ++epoch_);
    }

    void write(uint64_t pages)
    {
        uint64_t n = std::min<uint64_t>(pages, queued_.size());
        REQUIRE(queue_write(&medium_, pages, epoch_) == (int64_t)n);
        for (; n > 0; n--) {
            in_file_[queued_.front()] = in_home_[queued_.front()];
            queued_.pop_front();
        }
    }

    // The model and the file have the same.
    void compare()
    {
        REQUIRE(queue_pages(&medium_) == queued_.size());
        REQUIRE(std::all_of(behind_, behind_ + PM_PAGE, [](char c) { return c == 0; }));
        std::string file = test::read_file(path_);
        for (uint64_t page = 0; page < pages_; page++) {
            uint64_t word;
            file.copy(reinterpret_cast<char *>(&word), sizeof word, page * PM_PAGE);
            if (word != in_file_[page])
                FAIL("page " << page << " has " << word << ", not " << in_file_[page]);
        }
    }

  private:
    uint64_t pages_, epoch_ = 1;
    std::vector<uint64_t> in_file_, in_home_;
    std::deque<uint64_t> queued_;
    test::Directory directory_;
    std::string path_ = directory_ / "file";
    struct medium medium_{};
    struct tables tables_{};
    const char *behind_; // the queue's own table
};

} // namespace

TEST_CASE("the table of the queue is full, all but one page, or has room for one")
{
    constexpr uint64_t PAGES = 256; // whose table is a page
    for (uint64_t pushed : {PAGES - 1, PAGES})
        for (uint64_t written : {uint64_t{1}, uint64_t{2}, PAGES / 2, pushed - 1})
            for (uint64_t again : {uint64_t{1}, written}) {
                INFO(pushed << " pages queued, " << written << " written, " << again << " again");
                Queue queue(PAGES);
                for (uint64_t page = 0; page < pushed; page++)
                    queue.change(page);
                queue.write(written);
                for (uint64_t page = 0; page < again; page++)
                    queue.change(page);
                queue.write(2);
                queue.compare();
                queue.write(PAGES);
                queue.compare();
            }
}

TEST_CASE("home has what was copied to a page, whether that waits in the queue, was written, or never changed")
{
    Queue queue(4);
    queue.change(0);
    queue.change(1);
    queue.write(1);
    for (uint64_t page = 0; page < 3; page++)
        queue.copy(page);
    queue.compare();
    queue.copy_all();
    queue.compare();
    queue.write(4);
    queue.compare();
}

TEST_CASE("the queue moves down in a large table, before that is full")
{
    constexpr uint64_t PAGES = 20000, LONG_RUN = 5000;
    std::minstd_rand random(1);
    Queue queue(PAGES);
    for (uint64_t page = 0; page < LONG_RUN; page++)
        queue.change(page);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 600; i++)
            queue.change(LONG_RUN + random() % (PAGES - LONG_RUN));
        queue.write(600);
    }
    queue.compare();
    queue.write(PAGES);
    queue.compare();
}
