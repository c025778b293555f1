// Tables and edits of the manifest in a container. Each is made, filled and linked in one transaction. Its
// bytes are handed over: nothing of them is stored twice.
#include "lsm/container_root.hpp"

#include "lsm/file.hpp"

#include <algorithm>

namespace lsm
{

Container::Piece *Container::make_piece(uint64_t number, std::string_view bytes)
{
    auto *piece = static_cast<Piece *>(allocate_in(container_.get(), sizeof(Piece)));
    void *handed = pm_put(container_.get(), bytes.data(), bytes.size());
    demand(handed ? 0 : -1);
    announce_stores(piece, sizeof *piece);
    *piece = {nullptr, nullptr, number, bytes.size(), handed};
    return piece;
}

// Do this in a transaction of its own. It fails as a whole.
template <class Change> void Container::change(Change change)
{
    commit_links();
    try {
        announce_stores(root_, sizeof *root_);
        change();
        commit();
    } catch (...) {
        roll_back(); // no reader has seen anything of it
        throw;
    }
}

void Container::find_tables()
{
    for (Piece *piece = root_->tables; piece; piece = piece->next)
        tables_[piece->number] = piece;
}

void Container::add_table(uint64_t number, std::string_view bytes)
{
    Hold hold(*this);
    Piece *piece;
    change([&] {
        piece = make_piece(number, bytes);
        piece->next = root_->tables;
        if (piece->next) {
            announce_stores(piece->next, sizeof *piece->next);
            piece->next->previous = piece;
        }
        root_->tables = piece;
    });
    std::lock_guard guard(tables_lock_);
    tables_[number] = piece;
}

std::string_view Container::table(uint64_t number)
{
    std::lock_guard guard(tables_lock_);
    const auto found = tables_.find(number);
    if (found == tables_.end())
        throw Error(EBADMSG, path_ + ": lacks table " + std::to_string(number) +
                                 "; restore the store from a backup");
    return found->second->text();
}

std::vector<uint64_t> Container::tables()
{
    std::lock_guard guard(tables_lock_);
    std::vector<uint64_t> numbers;
    for (const auto &[number, piece] : tables_)
        numbers.push_back(number);
    return numbers;
}

void Container::drop_table(uint64_t number)
{
    std::lock_guard guard(unneeded_lock_);
    unneeded_tables_.push_back(number);
}

// The caller holds the container, and unneeded_lock_.
bool Container::free_table()
{
    const uint64_t number = unneeded_tables_.back();
    std::lock_guard guard(tables_lock_);
    Piece *const piece = tables_.at(number);
    change([&] {
        if (piece->next) {
            announce_stores(piece->next, sizeof *piece->next);
            piece->next->previous = piece->previous;
        }
        if (piece->previous)
            announce_stores(piece->previous, sizeof *piece->previous);
        (piece->previous ? piece->previous->next : root_->tables) = piece->next;
        demand(pm_free(piece->bytes));
        demand(pm_free(piece));
    });
    times_freed_++;
    tables_.erase(number);
    unneeded_tables_.pop_back();
    return true;
}

std::vector<std::string_view> Container::edits() const
{
    std::vector<std::string_view> edits;
    for (Piece *edit = root_->first_edit; edit; edit = edit->next)
        edits.push_back(edit->text());
    return edits;
}

void Container::append_edit(std::string_view edit)
{
    Hold hold(*this);
    change([&] {
        Piece *const piece = make_piece(0, edit), *const last = root_->last_edit;
        if (last)
            announce_stores(last, sizeof *last);
        (last ? last->next : root_->first_edit) = piece;
        root_->last_edit = piece;
    });
}

void Container::begin_edits(std::string_view edit)
{
    Hold hold(*this);
    change([&] {
        for (Piece *old = root_->first_edit; old;) {
            Piece *const next = old->next;
            demand(pm_free(old->bytes));
            demand(pm_free(old));
            old = next;
        }
        root_->first_edit = root_->last_edit = make_piece(0, edit);
    });
}

} // namespace lsm
