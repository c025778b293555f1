// Which tables the store has, and in which levels.
//
// Invariants
//   1. A version never changes. Whoever reads holds the version, and so its tables.
//   2. In levels 1 and below, tables are in order, and no user key is in two of them.
//   3. For every key, level n has newer versions than level n + 1. In level 0 a table with a larger number
//      has newer ones.
#ifndef EXAMPLES_LSM_VERSION_HPP
#define EXAMPLES_LSM_VERSION_HPP

#include "lsm/table.hpp"

#include <array>

namespace lsm
{

using Tables = std::vector<std::shared_ptr<Table>>;

// A change of versions, as the manifest has it.
struct Edit {
    uint64_t log = 0;                       // logs before this one are in tables; 0: as before
    uint64_t next_number = 0;               // of files; 0: as before
    Sequence last_sequence = 0;             // 0: as before
    uint64_t container_id = 0, fast_id = 0; // as PLACES has them; 0: as before
    std::vector<std::pair<unsigned, TableInfo>> added; // with their levels
    std::vector<uint64_t> removed;                     // numbers

    std::string text() const;
    static std::optional<Edit> of(std::string_view text); // no value if it is damaged
};

class Version
{
  public:
    // The version after an edit. `opened` has the tables that it adds.
    Version after(const Edit &edit, const Tables &opened) const;

    std::optional<Table::Found> get(std::string_view user_key, Sequence sequence) const;

    // The tables that may have a version of the key, from new to old, as far as their ranges and filters
    // tell. They live as long as the version.
    std::vector<const Table *> candidates(std::string_view user_key) const;
    void add_cursors(Cursors &to) const; // they must be gone before the version

    const Tables &level(unsigned n) const { return levels_[n]; }
    uint64_t bytes(unsigned n) const;
    Tables all() const;
    std::vector<std::pair<unsigned, std::shared_ptr<Table>>> with_levels() const; // all

    // The tables of a level that may have user keys from `smallest` to `largest`.
    Tables overlapping(unsigned n, std::string_view smallest, std::string_view largest) const;

  private:
    template <class Visit> void visit_candidates(std::string_view user_key, Visit visit) const;

    std::array<Tables, levels> levels_;
};

// A walk through tables that are in order.
std::unique_ptr<Cursor> level_cursor(const Tables &tables,
                                     Table::Values values = Table::Values::read);

} // namespace lsm

#endif
