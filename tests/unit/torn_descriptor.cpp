// The undo log's images are of one page and one epoch, which their descriptors name. A power failure may
// tear a descriptor at words, and keep what the slot had before in some of them. Such an image must never
// go back to the page that the descriptor names.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <unistd.h>

using test::page_word;

namespace
{

constexpr uint64_t SEGMENT = 64 << 10, PAGES = 8, CHANGED = 3;

// Where the newest images have their descriptors.
std::vector<uint64_t> newest_descriptors(const std::string &file)
{
    std::vector<uint64_t> found;
    uint64_t newest = 0;
    for (uint64_t i = 0; i < file.size() / SEGMENT; i++) {
        uint64_t word;
        memcpy(&word, &file[FORMAT_TABLE + i * sizeof word], sizeof word);
        for (uint32_t slot = 0;
             segment_kind(word) == SEGMENT_LOG && slot < log_segment_slots(SEGMENT); slot++) {
            const uint64_t at = i * SEGMENT + slot * sizeof(log_descriptor);
            log_descriptor d;
            memcpy(&d, &file[at], sizeof d);
            if (d.epoch > newest)
                found.clear();
            newest = std::max(newest, d.epoch);
            if (d.epoch == newest && newest != 0)
                found.push_back(at);
        }
    }
    return found;
}

} // namespace

// arguments: path
CHILD_PROCESS(stores_to_a_page)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    page_word(c, CHANGED) = 99;
    _exit(0);
}

TEST_CASE("an image whose descriptor has a word of another is none", "[undo]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", torn = directory / "torn.pm";
    test::Container c = test::open_with_pages(path, PAGES, test::small());
    for (uint64_t page = 0; page + 1 < PAGES; page++)
        page_word(c.get(), page) = page;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    REQUIRE_CLEAN(test::run("stores_to_a_page", {path}));
    const std::string file = test::read_file(path);
    const std::vector<uint64_t> descriptors = newest_descriptors(file);
    REQUIRE(descriptors.size() == 1);
    for (size_t field : {offsetof(log_descriptor, epoch), offsetof(log_descriptor, page),
                         offsetof(log_descriptor, sum)}) {
        CAPTURE(field);
        std::string changed = file;
        changed[descriptors[0] + field] ^= field == offsetof(log_descriptor, epoch) ? 2 : 1;
        test::write_file(torn, changed);
        const pm_options how = test::options();
        REQUIRE_FALSE(pm_open(torn.c_str(), &how));
        REQUIRE(test::failed_with(EBADMSG, {torn.c_str(), "damaged"}));
    }
    test::write_file(torn, file);
    c = test::open(torn, test::options());
    for (uint64_t page = 0; page + 1 < PAGES; page++)
        REQUIRE(page_word(c.get(), page) == page);
}
