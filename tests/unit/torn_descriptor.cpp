// The undo log's images are of one page and one epoch, which their descriptors name. A power failure may
// tear a descriptor at words, and keep what the slot had before in some of them. Such an image must never
// go back to the page that the descriptor names. Nor may a forged one go to a page that holds no data.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <unistd.h>
#include <utility>
#include <vector>

using test::page_word;

namespace
{

// What a recovery wrote back before it first waited for the medium.
std::vector<std::pair<const char *, size_t>> written_back;
bool is_settled = true;

} // namespace

extern "C" {
struct medium;

void __real_medium_write_back(struct medium *medium, const void *address, size_t size);
int __real_medium_settle(struct medium *medium);

void __wrap_medium_write_back(struct medium *medium, const void *address, size_t size)
{
    if (!is_settled)
        written_back.push_back({static_cast<const char *>(address), size});
    __real_medium_write_back(medium, address, size);
}

int __wrap_medium_settle(struct medium *medium)
{
    is_settled = true;
    return __real_medium_settle(medium);
}
}

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

namespace
{

// A container in which a page was stored to and the process died, and where the image's descriptor is.
struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", changed = directory / "changed.pm", file;
    uint64_t descriptor = 0;

    Fixture()
    {
        test::Container c = test::open_with_pages(path, PAGES, test::small());
        for (uint64_t page = 0; page + 1 < PAGES; page++)
            page_word(c.get(), page) = page;
        REQUIRE_OK(pm_commit(c.get()));
        c.reset();
        REQUIRE_CLEAN(test::run("stores_to_a_page", {path}));
        file = test::read_file(path);
        const std::vector<uint64_t> descriptors = newest_descriptors(file);
        REQUIRE(descriptors.size() == 1);
        descriptor = descriptors[0];
    }
    // Of the image.
    uint64_t slot() const
    {
        return descriptor / SEGMENT * SEGMENT + log_segment_first_slot(SEGMENT) +
               descriptor % SEGMENT / sizeof(log_descriptor) * PM_PAGE;
    }
    bool is_refused(const std::string &bytes)
    {
        test::write_file(changed, bytes);
        const pm_options how = test::options(PM_ACCEPT_COPY);
        return !pm_open(changed.c_str(), &how) &&
               test::failed_with(EBADMSG, {changed.c_str(), "damaged"});
    }
    ~Fixture()
    {
        test::Container c = test::open(path, test::options());
        for (uint64_t page = 0; page + 1 < PAGES; page++)
            CHECK(page_word(c.get(), page) == page);
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "an image whose descriptor has a word of another is none", "[undo]")
{
    for (size_t field : {offsetof(log_descriptor, epoch), offsetof(log_descriptor, page),
                         offsetof(log_descriptor, sum)}) {
        CAPTURE(field);
        std::string torn = file;
        torn[descriptor + field] ^= field == offsetof(log_descriptor, epoch) ? 2 : 1;
        REQUIRE(is_refused(torn));
    }
}

TEST_CASE_METHOD(Fixture, "an image of a page without data is none, whatever its checksum says",
                 "[undo]")
{
    format_header header;
    memcpy(&header, &file[FORMAT_HEADER_A], sizeof header);
    const uint64_t sum = checksum(&file[slot()], PM_PAGE, header.id[0] ^ header.id[1]);
    log_descriptor d;
    memcpy(&d, &file[descriptor], sizeof d);
    REQUIRE(d.sum == checksum_mix(sum, d.epoch, d.page));
    const uint64_t end = file.size() / PM_PAGE;
    for (uint64_t page : {UINT64_C(0), FORMAT_STATE / PM_PAGE, SEGMENT / PM_PAGE - 1, end, end + 1,
                          UINT64_C(1) << 32 | d.page, UINT64_C(1) << 52 | d.page}) {
        CAPTURE(page);
        d.page = page;
        d.sum = checksum_mix(sum, d.epoch, page);
        std::string forged = file;
        memcpy(&forged[descriptor], &d, sizeof d);
        REQUIRE(is_refused(forged));
    }
}

// U5. Where each lies in memory is not known here, but how far they are apart.
TEST_CASE_METHOD(Fixture,
                 "a recovery makes images and their descriptors durable before it relies on them",
                 "[undo]")
{
    written_back.clear();
    is_settled = false;
    test::open(path, test::options());
    REQUIRE(is_settled);
    bool is_image = false, is_descriptor = false;
    for (const auto &[image, image_bytes] : written_back)
        for (const auto &[address, bytes] : written_back)
            if (image_bytes == PM_PAGE && image - address == (ptrdiff_t)(slot() - descriptor)) {
                is_image = true;
                is_descriptor |= bytes == sizeof(log_descriptor);
            }
    REQUIRE(is_image);
    REQUIRE(is_descriptor);
}
