#include "faults/case.hpp"

#include "common/format.hpp"
#include "faults/workload.hpp"

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>

namespace faults
{

std::string text_of(const Case &c)
{
    return c.place + " " + c.fault.call + " " + std::to_string(c.fault.count) + " " +
           error_name(c.fault.error) + " " + c.then;
}

Case case_of(const std::string &text)
{
    std::istringstream in(text);
    Case c;
    std::string error;
    if (!(in >> c.place >> c.fault.call >> c.fault.count >> error >> c.then))
        throw std::invalid_argument("LIBPM_FAULT is PLACE CALL COUNT ERRNO THEN, not " + text);
    c.fault.error = error_named(error);
    return c;
}

pm_options options_in(const std::string &place, unsigned flags)
{
    bool unsafe = place == "file" && test::mode() == "undo";
    pm_options o = test::options(flags | PM_MOVABLE | (unsafe ? (unsigned)PM_UNSAFE_POWER : 0u));
    o.segment_size = 64 << 10;
    o.max_size = 4 << 20;
    o.private_max = 1; // the least
    return o;
}

bool view_is_full(const Case &c)
{
    return c.place == "elsewhere" && c.fault.call == "pwrite" && c.fault.error == ENOSPC;
}

bool has_one_of(const std::string &text, const std::string &words)
{
    std::istringstream in(words);
    for (std::string word; std::getline(in, word, '|');)
        if (text.find(word) != std::string::npos)
            return true;
    return false;
}

uint64_t entries_of(const std::string &directory)
{
    uint64_t count = 0;
    for ([[maybe_unused]] auto &entry : std::filesystem::directory_iterator(directory))
        count++;
    return count;
}

namespace
{

// Objects in a closed file, as its segment table and bitmaps have them.
uint64_t objects_of(pm_container *c)
{
    uint64_t count = 0;
    for (const void *p = nullptr; (p = pm_next_object(c, p, nullptr));)
        count++;
    return count;
}

// As the file says, without the library's help; where its log is the home, with it.
uint64_t objects_in(const std::string &path)
{
    if (test::engine() == "log")
        return objects_of(test::open(path, test::options(PM_READONLY)).get());
    std::string bytes = test::read_file(path);
    const auto *header = reinterpret_cast<const format_header *>(bytes.data());
    const auto *table = reinterpret_cast<const uint64_t *>(bytes.data() + FORMAT_TABLE);
    uint64_t count = 0;
    for (uint64_t i = 0; i < bytes.size() / header->segment_size; i++) {
        if (segment_kind(table[i]) == SEGMENT_LARGE)
            count++;
        if (segment_kind(table[i]) != SEGMENT_SLAB)
            continue;
        uint64_t size = (uint64_t)segment_argument(table[i]) * FORMAT_GRANULARITY_MIN;
        struct slab_shape shape = slab_shape(header->segment_size, (uint32_t)size);
        const auto *bitmap =
            reinterpret_cast<const uint64_t *>(bytes.data() + i * header->segment_size);
        for (uint32_t slot = 0; slot < shape.objects; slot++)
            count += bitmap_has(bitmap, slot);
    }
    return count;
}

} // namespace

std::string judge(const std::string &path, const pm_options &options, uint64_t low, uint64_t high)
{
    test::Container c(pm_open(path.c_str(), &options));
    if (!c || pm_check(c.get()) != 0)
        return pm_errormsg();
    const auto *root = static_cast<const Root *>(pm_getroot(c.get()));
    uint64_t version = root ? root->version : 0;
    if (version < low || version > high)
        return "version " + std::to_string(version) + " is not from " + std::to_string(low) +
               " to " + std::to_string(high);
    Model model = model_of(version);
    std::string difference = model.compare(root);
    if (!difference.empty())
        return difference;
    if (pm_close(c.release()) != 0)
        return pm_errormsg();
    // This close may have left a checkpoint. The next one has nothing to write.
    c.reset(pm_open(path.c_str(), &options));
    if (!c)
        return pm_errormsg();
    uint64_t bytes = test::stats(c.get()).file_bytes;
    if (pm_close(c.release()) != 0)
        return pm_errormsg();
    struct stat st;
    if (stat(path.c_str(), &st) != 0 || (uint64_t)st.st_size - bytes >= options.segment_size)
        return "the file is longer than its segments";
    if (st.st_blocks * 512 < st.st_size)
        return "the file has holes";
    if (objects_in(path) != model.object_count())
        return "there are " + std::to_string(objects_in(path)) + " objects, not " +
               std::to_string(model.object_count());
    return "";
}

} // namespace faults
