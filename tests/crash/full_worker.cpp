#include "crash/full.hpp"

#include "common/fixture.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <random>
#include <unistd.h>

namespace full
{

namespace
{

constexpr uint64_t KiB = 1 << 10, MiB = 1 << 20, PAGE = 4096;

// A touch changes the last word, and at the beginning one word of each second line.
uint64_t word_at(const Header &h, uint64_t i, uint64_t count)
{
    const bool touched = i + 1 == count || (i < 512 && i % 16 == 5);
    return ((uint64_t{h.seed} << 32 | h.slot) + i) * 0x9e3779b97f4a7c15 + (touched ? h.touches : 0);
}

std::vector<uint64_t> words_of(const Header &h)
{
    std::vector<uint64_t> all(h.bytes / sizeof(uint64_t));
    for (uint64_t i = 0; i < all.size(); i++)
        all[i] = word_at(h, i, all.size());
    memcpy(all.data(), &h, sizeof h);
    return all;
}

struct Difference {
    const char *what; // nullptr: none
    Header found;
    uint64_t word;
};

// An object of the container, with `size` usable bytes.
Difference compare(const uint64_t *object, uint64_t size, const Model &model)
{
    Header h;
    memcpy(&h, object, sizeof h);
    if (h.slot >= model.slots() || !(h == model.at(h.slot)) || h.bytes == 0 || h.bytes > size)
        return {"an object is not as in the model", h, 0};
    const uint64_t count = h.bytes / sizeof *object;
    for (uint64_t i = sizeof h / sizeof *object; i < count; i++)
        if (object[i] != word_at(h, i, count))
            return {"an object has other contents", h, i};
    return {nullptr, h, 0};
}

struct Root {
    uint64_t transaction; // the last one
};

// One process that has the container open. It ends at the first violation.
class Worker
{
  public:
    Worker(Shared &shared, const std::string &path, const Life &life, uint64_t seed)
        : shared_(shared), path_(path), life_(life), random_(seed)
    {
        draw_target();
    }

    // `last` is the model of the last judgement.
    void judge(const Model &last)
    {
        model_ = last;
        open(chance(8));
        const uint64_t found = root_ ? root_->transaction : 0;
        if (found < shared_.awaited || found > shared_.begun)
            violate("it has transaction %lu, and not one of %lu to %lu", found,
                    shared_.awaited.load(), shared_.begun.load());
        shared_.replay(model_, found);
        (void)places_in(c_, model_);
        if (pm_check(c_) != 0)
            violate("pm_check: %s", pm_errormsg());
        shared_.found = found;
        if (chance(2))
            demand(pm_close(c_) == 0, "pm_close");
    }

    void work(const Model &model)
    {
        model_ = model;
        open(false);
        places_ = places_in(c_, model_);
        if (!root_)
            make_root();
        for (uint64_t left = 1 + random_() % 500; left > 0 && shared_.has_room(); left--)
            step();
        close();
    }

  private:
    struct Change {
        Header before;
        uint64_t *place; // before
    };

    [[gnu::format(printf, 2, 3), noreturn]] void violate(const char *format, ...)
    {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(shared_.violation, sizeof shared_.violation, format, arguments);
        va_end(arguments);
        _exit(VIOLATION);
    }
    void demand(bool holds, const char *what)
    {
        if (!holds)
            violate("%s fails: %s", what, pm_errormsg());
    }
    // False: the disk is full.
    bool fits(bool done, const char *what)
    {
        const int error = errno;
        demand(done || error == ENOSPC, what);
        shared_.full += !done;
        return done;
    }

    bool chance(unsigned of) { return random_() % of == 0; }
    template <size_t N> uint64_t one_of(const uint64_t (&choices)[N])
    {
        return choices[random_() % N];
    }

    void draw_target()
    {
        target_ = life_.file_max * (chance(20) ? random_() % 70 : 70 + random_() % 29) / 100;
    }

    // ---- the container ---------------------------------------------------------------------------------------

    pm_options how()
    {
        pm_options o = test::options(PM_CREATE | PM_MOVABLE | PM_ACCEPT_COPY);
        announces_ = !test::stores() && chance(2);
        if (announces_) {
            o.tracker = PM_TRACKER_STORES;
            o.flags |= PM_ANNOUNCED;
        }
        o.concurrent_stores = o.tracker == PM_TRACKER_FAULTS && chance(2);
        o.private_max = one_of({0, 0, 1, MiB, 4 * MiB});    // 1: the least there is
        o.checkpoint_bytes = one_of({0, 1, 64 * KiB, MiB}); // 1: at each commit, or nearly
        o.live_percent = (unsigned)one_of({0, 10, 75, 90});
        o.segment_size = life_.segment;
        o.max_size = 256 * MiB;
        o.initial_size = one_of({0, 0, life_.file_max / 2});
        o.granularity = life_.granularity;
        return o;
    }
    void open(bool readonly)
    {
        pm_options o = how();
        if (readonly && std::filesystem::exists(path_)) // else a kill came before it was created
            o.flags ^= PM_READONLY | PM_CREATE;
        c_ = pm_open(path_.c_str(), &o);
        demand(c_, "pm_open");
        root_ = static_cast<Root *>(pm_getroot(c_));
        shared_.openings++;
    }
    void close()
    {
        demand(pm_close(c_) == 0, "pm_close");
        shared_.awaited = shared_.begun.load();
        ticket_.container = nullptr;
    }
    void reopen()
    {
        if (chance(3)) { // with something that nobody commits
            begin();
            (void)operate();
        }
        close();
        forget();
        open(false);
        places_ = places_in(c_, model_);
    }
    void make_root()
    {
        root_ = static_cast<Root *>(pm_calloc(c_, 1, sizeof *root_));
        demand(root_ && pm_setroot(c_, root_, 0) == 0 && pm_commit(c_) == 0, "making the root");
    }

    // Where each object is. There is nothing else, and each has the bytes that the model says.
    std::vector<uint64_t *> places_in(pm_container *c, const Model &model)
    {
        std::vector<uint64_t *> places(life_.slots);
        const void *root = pm_getroot(c);
        uint64_t bytes = 0, size;
        for (void *p = nullptr; (p = pm_next_object(c, p, &size));) {
            if (p == root)
                continue;
            const Difference d = compare(static_cast<uint64_t *>(p), size, model);
            const Header &h = d.found;
            if (d.what)
                violate("%s: slot %u, %u bytes, seed %u, touches %u, word %lu; offset %#lx", d.what,
                        h.slot, h.bytes, h.seed, h.touches, d.word,
                        (uint64_t)p - (uint64_t)test::stats(c).base);
            if (places[h.slot])
                violate("slot %u is there twice", h.slot);
            places[h.slot] = static_cast<uint64_t *>(p);
            bytes += h.bytes;
        }
        if (bytes != model.bytes())
            violate("objects of %lu bytes are missing", model.bytes() - bytes);
        return places;
    }

    // ---- what happens between transactions -------------------------------------------------------------------

    void step()
    {
        const unsigned what = random_() % 500;
        if (what < 2)
            compact();
        else if (what == 2)
            copy();
        else if (what < 5)
            reopen();
        else if (what < 10)
            draw_target();
        else
            transact();
        if (what % 8 == 0 && ticket_.container)
            wait();
    }
    void wait()
    {
        demand(pm_wait(ticket_) == 0, "pm_wait");
        shared_.awaited = std::max(shared_.awaited.load(), ticket_transaction_);
        ticket_.container = nullptr;
    }
    void compact()
    {
        shared_.compactions += fits(pm_compact(c_, nullptr, nullptr, nullptr) == 0, "pm_compact");
        root_ = static_cast<Root *>(pm_getroot(c_));
        places_ = places_in(c_, model_);
    }
    void copy()
    {
        const std::string to = path_ + ".copy";
        std::filesystem::remove(to);
        demand(pm_copy(c_, to.c_str(), nullptr, nullptr) == 0, "pm_copy");
        pm_options o = test::options(PM_MOVABLE | PM_READONLY);
        test::Container copy(pm_open(to.c_str(), &o));
        demand(copy != nullptr, "opening the copy");
        (void)places_in(copy.get(), model_);
        demand(pm_check(copy.get()) == 0, "checking the copy");
        shared_.copies++;
    }

    // ---- transactions ----------------------------------------------------------------------------------------

    void transact()
    {
        begin();
        if (chance(10))
            reserve();
        const uint64_t file = life_.file_max;
        const bool fills = target_ > file * 7 / 10 && model_.bytes() < file * 6 / 10;
        const bool all = fills ? insert_many(file / 10) : operate_some();
        if (chance(10))
            return roll_back();
        if (all && commit())
            return;
        if (all && chance(2)) { // the transaction is still there
            remove_some();
            if (commit())
                return;
        }
        roll_back();
        make_room();
    }
    void begin()
    {
        room_ = UINT64_MAX;
        reserved_ = false;
        dirty(root_, sizeof *root_);
        root_->transaction++;
    }
    // Without a promise the transaction may be of any size.
    void reserve()
    {
        const uint64_t bytes = PAGE << random_() % 8;
        reserved_ = fits(pm_reserve(c_, bytes) == 0, "pm_reserve");
        room_ = reserved_ ? bytes : UINT64_MAX;
    }
    bool commit()
    {
        const uint64_t n = root_->transaction;
        const bool asynchronous = chance(4);
        shared_.begun = n;
        pm_ticket ticket = {c_, 0};
        if (asynchronous)
            ticket = pm_commit_async(c_);
        else if (pm_commit(c_) != 0)
            ticket.container = nullptr;
        if (!fits(ticket.container, "pm_commit")) {
            shared_.begun = n - 1;
            if (reserved_)
                violate("a commit fails though its room was reserved: %s", pm_errormsg());
            return false;
        }
        undo_.clear();
        ticket_ = ticket;
        ticket_transaction_ = n;
        if (!asynchronous) {
            shared_.awaited = n;
            ticket_.container = nullptr;
        }
        shared_.note_commit(model_.bytes(), life_.file_max);
        return true;
    }
    void roll_back()
    {
        demand(pm_rollback(c_) == 0, "pm_rollback");
        forget();
        shared_.rollbacks++;
        if (chance(20))
            (void)places_in(c_, model_);
    }
    void forget()
    {
        for (; !undo_.empty(); undo_.pop_back()) {
            const Change &last = undo_.back();
            model_.set(last.before);
            places_[last.before.slot] = last.place;
            shared_.changes--;
        }
    }
    // On a full disk too there is room to free objects.
    void make_room()
    {
        for (uint64_t commits = 1 + random_() % 3; commits > 0; commits--) {
            begin();
            remove_some();
            if (!commit())
                violate("a commit that frees objects only fails: %s", pm_errormsg());
        }
        if (chance(2))
            draw_target();
    }

    // ---- operations: false if the disk is full ---------------------------------------------------------------

    bool insert_many(uint64_t bytes)
    {
        bool all = true;
        for (const uint64_t end = model_.bytes() + bytes;
             all && model_.bytes() < end && room_ > bytes;) {
            const auto slot = (uint32_t)(random_() % life_.slots);
            all = model_.at(slot).bytes > 0 || insert(slot);
        }
        return all;
    }
    bool operate_some()
    {
        bool all = true;
        for (uint64_t left = 1 + random_() % one_of({2, 10, 100}); left > 0 && all; left--)
            all = operate();
        return all;
    }
    // 90 % of them are of 15 % of the slots, but while the container fills.
    bool operate()
    {
        const bool skewed = model_.bytes() > target_ * 9 / 10 && !chance(10);
        const auto slot = (uint32_t)(random_() % (skewed ? life_.slots * 15 / 100 : life_.slots));
        if (model_.at(slot).bytes > 0) {
            if (chance(model_.bytes() > target_ ? 2 : 10))
                return !affords(128) || remove(slot);
            return chance(2) ? touch(slot) : replace(slot);
        }
        return model_.bytes() >= target_ || insert(slot);
    }
    // What pm_reserve() promises room for.
    bool affords(uint64_t bytes)
    {
        if (bytes > room_)
            return false;
        room_ -= bytes;
        return true;
    }
    static uint64_t pages(uint64_t bytes) { return (bytes / PAGE + 2) * PAGE; }

    // The logarithm has a uniform distribution, so small ones are more frequent.
    uint32_t draw_size()
    {
        const double bits =
            std::uniform_real_distribution(4.0, std::log2((double)life_.object_max))(random_);
        const uint32_t bytes = std::max((uint32_t)std::exp2(bits), life_.granularity);
        return bytes / life_.granularity *
               life_.granularity; // so that the model has what is in use
    }
    Header draw(uint32_t slot) { return {slot, draw_size(), (uint32_t)random_(), 0}; }

    void change(const Header &now, uint64_t *place)
    {
        undo_.push_back({model_.at(now.slot), places_[now.slot]});
        shared_.add(root_->transaction, now);
        model_.set(now);
        places_[now.slot] = place;
    }
    bool remove(uint32_t slot)
    {
        demand(pm_free(places_[slot]) == 0, "pm_free");
        change({slot, 0, 0, 0}, nullptr);
        return true;
    }
    void remove_some()
    {
        uint64_t left = 1 + random_() % 20;
        for (uint64_t tries = 4 * life_.slots; left > 0 && tries > 0; tries--) {
            const auto slot = (uint32_t)(random_() % life_.slots);
            if (model_.at(slot).bytes > 0)
                left -= remove(slot);
        }
    }
    bool insert(uint32_t slot)
    {
        const Header now = draw(slot);
        if (!affords(std::max(UINT64_C(128), uint64_t{now.bytes} + 64)))
            return true;
        const std::vector<uint64_t> words = words_of(now);
        const unsigned way = random_() % 3; // handed over as a whole, or in pieces, or stored
        void *p = way == 0   ? pm_put(c_, words.data(), now.bytes)
                  : way == 1 ? pm_put(c_, nullptr, now.bytes)
                             : pm_malloc(c_, now.bytes);
        if (!fits(p, "to allocate"))
            return false;
        change(now, static_cast<uint64_t *>(p));
        return way == 0 || (way == 1 ? write(p, words) : store(p, words));
    }
    bool replace(uint32_t slot)
    {
        Header now = draw(slot);
        const uint64_t before = model_.at(slot).bytes;
        const bool resizes = chance(3);
        if (!resizes)
            now.bytes = (uint32_t)before;
        if (!affords(pages(before) + pages(now.bytes)))
            return true;
        uint64_t *place = places_[slot];
        if (resizes &&
            !fits(place = static_cast<uint64_t *>(pm_realloc(place, now.bytes)), "pm_realloc"))
            return false;
        change(now, place);
        const std::vector<uint64_t> words = words_of(now);
        return chance(2) ? write(place, words) : store(place, words);
    }
    // Few words of some lines change, so the commit logs deltas.
    bool touch(uint32_t slot)
    {
        Header now = model_.at(slot);
        if (!affords(pages(now.bytes)))
            return true;
        now.touches++;
        uint64_t *place = places_[slot];
        change(now, place);
        const std::vector<uint64_t> words = words_of(now);
        for (uint64_t i = 0; i < words.size(); i++)
            if (place[i] != words[i]) {
                dirty(place + i, sizeof *place);
                place[i] = words[i];
            }
        return true;
    }
    void dirty(const void *at, uint64_t bytes)
    {
        if (announces_)
            demand(pm_dirty(at, bytes) == 0, "pm_dirty");
    }
    bool store(void *at, const std::vector<uint64_t> &words)
    {
        dirty(at, words.size() * sizeof words[0]);
        std::copy(words.begin(), words.end(), static_cast<uint64_t *>(at));
        return true;
    }
    bool write(void *at, const std::vector<uint64_t> &words)
    {
        const uint64_t piece = chance(2) ? words.size() : 1 + random_() % words.size();
        for (uint64_t i = 0; i < words.size(); i += piece)
            if (!fits(pm_write(static_cast<uint64_t *>(at) + i, &words[i],
                               std::min(piece, words.size() - i) * sizeof words[0]) == 0,
                      "pm_write"))
                return false;
        return true;
    }

    Shared &shared_;
    const std::string path_;
    const Life life_;
    std::mt19937_64 random_;
    bool announces_ = false, reserved_ = false;
    pm_container *c_ = nullptr;
    Root *root_ = nullptr;
    uint64_t target_ = 0, room_ = 0; // bytes of objects; what the transaction may still take
    pm_ticket ticket_{};             // of a commit that nobody has waited for
    uint64_t ticket_transaction_ = 0;
    Model model_{0};
    std::vector<uint64_t *> places_;
    std::vector<Change> undo_;
};

} // namespace

Life::Life(uint64_t seed)
{
    std::mt19937_64 random(seed);
    const unsigned shift = random() % 4;
    segment = 64 * KiB << shift;
    // With few chunks little of the file can be in use (docs/guide/cleaner.md).
    file_max = segment * ((random() % 8 == 0 ? 12 : 24) + random() % (100 >> shift));
    const uint64_t sizes[] = {256, 4 * KiB, 32 * KiB, 300 * KiB};
    object_max = std::min(sizes[random() % 4], file_max / 10);
    const double mean = (double)object_max / std::log((double)object_max / 16); // see draw_size()
    slots = 32 + (uint64_t)(1.5 * (double)file_max / mean);
    granularity = 16U << (random() % 3);
}

void work(Shared &shared, const std::string &path, const Life &life, const Model &model,
          uint64_t seed)
{
    Worker(shared, path, life, seed).work(model);
}

void judge(Shared &shared, const std::string &path, const Life &life, const Model &model,
           uint64_t seed)
{
    Worker(shared, path, life, seed).judge(model);
}

} // namespace full
