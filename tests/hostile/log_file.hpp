// The file of a log container, part by part, as src/container/format_log.h has it. For tests that damage
// such a file, or forge one: they make its checksums and sums right again.
#ifndef TESTS_HOSTILE_LOG_FILE_HPP
#define TESTS_HOSTILE_LOG_FILE_HPP

#include "hostile/anatomy.hpp"

extern "C" {
#include "container/format_log.h"
}

#include <map>

namespace hostile
{

struct LogPart {
    uint64_t offset; // in the file
    log_part head;
    std::vector<uint64_t> table; // words

    // Call `visit(entry, where)` for all entries; it is at word `where` of the file.
    template <typename Visit> void for_each_entry(Visit visit) const
    {
        for (uint64_t i = 0; i < table.size(); i += log_entry_words(table[i]))
            visit(table[i], log_table_word(offset / PM_LINE) + i);
    }

    std::vector<uint64_t> runs() const
    {
        std::vector<uint64_t> found;
        for_each_entry([&](uint64_t entry, uint64_t) {
            if (!log_is_delta(entry))
                found.push_back(entry);
        });
        return found;
    }

    uint64_t lines() const { return (contents() - offset) / PM_LINE + head.lines; }
    uint64_t bytes() const { return lines() * PM_LINE; }
    uint64_t end() const { return offset + bytes(); }
    uint64_t contents() const { return log_part_contents(&head, offset / PM_LINE) * PM_LINE; }
};

class LogFile
{
  public:
    explicit LogFile(Bytes file);

    Bytes bytes;

    uint64_t chunk_size() const { return chunk_size_; }
    uint64_t chunks() const { return bytes.size() / chunk_size_; }
    uint64_t chunk_of(uint64_t offset) const { return offset / chunk_size_; }
    uint64_t chunk_word(uint64_t chunk) const { return at<uint64_t>(bytes, chunk * chunk_size_); }
    uint64_t max_lines() const; // of the container
    uint64_t newest_epoch() const;

    // All parts that a walk of the chunks finds, by epoch and number.
    std::vector<LogPart> parts() const;
    std::vector<LogPart> record(uint64_t epoch) const;
    std::vector<LogPart> newest() const { return record(newest_epoch()); }

    // Where in the file a word of the container is, as the last commit left it; 0: in no record.
    uint64_t place_of(uint64_t offset) const;
    // What the last commit has in these lines.
    Bytes contents(uint64_t line, uint64_t count) const;

    // The checksum of what looks like a part there.
    uint64_t sum_of(uint64_t offset) const;
    // Make this checksum right.
    void seal_part(uint64_t offset);
    // Make map sum and checksum of all parts of the newest record right.
    void seal_newest();
    // Make the checksum of an image right that a checkpoint has there.
    void seal_image(uint64_t offset);
    // Make right what the root there, which is of one piece, says of the images, and its checksum.
    void seal_units(uint64_t offset);
    // Make the map sum in the root of the checkpoint right, if the root is of one piece, and its checksum.
    void seal_checkpoint();
    // Append a record of one part to the chunk of the newest record, with this table. The lines of its runs are
    // all of bytes `fill`. Its base is that of the newest record; its offset is returned.
    uint64_t append(const std::vector<uint64_t> &words, char fill);
    // Change a word of the last commit that is journaled.
    void forge_word(uint64_t offset, uint64_t word);

  private:
    struct Place {
        uint64_t base = 0;           // line of the file that has the whole line
        uint64_t mask = 0, word = 0; // of its delta
    };

    std::map<uint64_t, Place> places() const; // of each line with a piece that counts
    uint64_t place_in(const std::map<uint64_t, Place> &pieces, uint64_t offset) const;
    // A word of the container, by all pieces. And whether a line counts, which has one (L14).
    uint64_t word_of(const std::map<uint64_t, Place> &pieces, uint64_t offset) const;
    bool has_owner(const std::map<uint64_t, Place> &pieces, uint64_t line) const;
    uint64_t map_sum() const;
    uint64_t unit_sum(uint64_t unit, uint64_t offset) const; // of what an image says of its unit
    uint64_t places_sum(uint64_t unit, uint64_t offset) const; // without the deltas

    uint64_t chunk_size_, seed_;
};

} // namespace hostile

#endif
