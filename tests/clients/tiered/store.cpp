// The tiered store: fields of every kind in every tier, and transactions over all of them. Tiers get full, move
// values, and lose values.
#include "common/fixture.hpp"
#include "common/process.hpp"
#include "crash/spawn.hpp"
#include "system/disk.hpp"

#include "remote.hpp"
#include "types.durable.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sys/resource.h>
#include <thread>
#include <unordered_set>

using people::durable::person;

namespace
{

namespace fs = std::filesystem;

tiered::options with(const std::shared_ptr<Remote> &remote)
{
    tiered::options options;
    options.max_size = 1 << 30;
    options.engine = test::engine_option();
    options.tiers["remote"] = remote;
    return options;
}

std::array<std::byte, 10000> image_of(unsigned seed)
{
    std::array<std::byte, 10000> image;
    for (size_t i = 0; i < image.size(); i++)
        image[i] = std::byte(i * 7 + seed);
    return image;
}

size_t value_files(const std::string &store)
{
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(store + "/values"), fs::directory_iterator()));
}

std::string one_file(const std::string &store)
{
    REQUIRE(value_files(store) == 1);
    return fs::directory_iterator(store + "/values")->path();
}

template <class Call> std::string message_of(int number, Call call)
{
    try {
        call();
    } catch (const tiered::error &error) {
        INFO(error.what());
        CHECK(error.code().value() == number);
        return error.what();
    }
    FAIL("no error");
    return "";
}

bool says(const std::string &text, std::initializer_list<const char *> parts)
{
    return std::ranges::all_of(
        parts, [&](const char *part) { return text.find(part) != std::string::npos; });
}

void fill(person p, int i, person boss)
{
    p.set_age(i);
    p.set_eyes(people::colour::green);
    p.set_marks(std::array<double, 12>{double(i), 2, 3});
    p.set_image(image_of(unsigned(i)));
    p.set_place("place " + std::to_string(i));
    p.set_guess("guess " + std::to_string(i));
    p.set_diary("diary " + std::to_string(i));
    p.set_name(std::string(size_t(i), 'n'));
    p.set_height(i / 2.0);
    p.set_steps(std::vector<float>(size_t(i), 1.5F));
    p.set_weights(std::array<float, 3>{1, 2, float(i)});
    p.set_boss(boss);
    p.home().set_number(i + 1);
    p.home().set_street("street " + std::to_string(i));
}

void require_filled(person p, int i, person boss, bool has_guess)
{
    REQUIRE(p.age() == i);
    REQUIRE(p.eyes() == people::colour::green);
    REQUIRE(p.marks()[0] == i);
    REQUIRE(std::ranges::equal(p.image(), image_of(unsigned(i))));
    REQUIRE(p.place() == "place " + std::to_string(i));
    REQUIRE(p.guess() == (has_guess ? "guess " + std::to_string(i) : ""));
    REQUIRE(p.diary() == "diary " + std::to_string(i));
    REQUIRE(p.name() == std::string(size_t(i), 'n'));
    REQUIRE(p.height() == i / 2.0);
    REQUIRE(std::ranges::equal(p.steps(), std::vector<float>(size_t(i), 1.5F)));
    REQUIRE(p.weights()[2] == float(i));
    REQUIRE(p.boss() == boss);
    REQUIRE(p.home().number() == i + 1);
    REQUIRE(p.home().street() == "street " + std::to_string(i));
}

std::atomic<unsigned> syncs; // of files of values, as containers in memory need none
std::atomic<unsigned> syncs_to_fail{0}; // so many of the next
std::string order; // v: a sync of a file of values, d: of their directory, c: a commit of the container

} // namespace

extern "C" int __real_fdatasync(int fd);
extern "C" int __wrap_fdatasync(int fd)
{
    syncs++;
    order += 'v';
    if (syncs_to_fail == 0)
        return __real_fdatasync(fd);
    syncs_to_fail--;
    errno = EIO;
    return -1;
}

extern "C" int __real_fsync(int fd);
extern "C" int __wrap_fsync(int fd)
{
    if (fs::read_symlink("/proc/self/fd/" + std::to_string(fd)).filename() == "values")
        order += 'd';
    return __real_fsync(fd);
}

extern "C" int __real_pm_commit(pm_container *c);
extern "C" int __wrap_pm_commit(pm_container *c)
{
    order += 'c';
    return __real_pm_commit(c);
}

TEST_CASE("objects have what was set, in this run and in the next")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    uint64_t id = 0;
    {
        tiered::store store(directory / "s", with(remote));
        auto &all = store.root<tiered::vector<person>>("all");
        const person empty = store.make<person>();
        REQUIRE(empty.age() == 0);
        REQUIRE(empty.place().empty());
        REQUIRE(empty.height() == 0);
        REQUIRE(empty.image().size() == 10000);
        REQUIRE(empty.image()[9999] == std::byte(0));
        REQUIRE(!empty.boss());
        for (int i = 0; i < 20; i++) {
            all.push_back(store.make<person>());
            fill(all.back(), i, all.front());
            require_filled(all.back(), i, all.front(), true);
        }
        id = all[7].durable_id();
        store.commit();
        require_filled(all[19], 19, all[0], true);
        REQUIRE(!all[3].place().is_copy()); // in persistent memory it is shown where it lies
        REQUIRE(all[3].image().is_copy());
    }
    tiered::store store(directory / "s", with(remote));
    auto &all = store.root<tiered::vector<person>>("all");
    REQUIRE(all.size() == 20);
    for (int i = 0; i < 20; i++)
        require_filled(all[size_t(i)], i, all[0], false);
    REQUIRE(store.find<person>(id) == all[7]);
    message_of(EINVAL, [&] { store.find<person>(id + 8); });
    message_of(EINVAL, [&] { store.root<tiered::list<person>>("all"); });
    const auto objects = store.all<person>();
    const auto count = size_t(std::ranges::distance(objects));
    REQUIRE(count == 21);
}

TEST_CASE("a value may have any length up to its limit, whatever length it had")
{
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>()));
    const auto one = store.make<people::durable::note>();
    const auto text = [](size_t length) { return std::string(length, char('a' + length)); };
    // Up to 12 bytes lie in the slot.
    for (const size_t before : {0, 1, 11, 12, 13, 16, 17})
        for (const size_t after : {0, 1, 11, 12, 13, 16, 17}) {
            INFO(before << " to " << after);
            one.set_text(text(before));
            store.commit();
            one.set_text(text(after));
            REQUIRE(one.text() == text(after));
            store.rollback();
            REQUIRE(one.text() == text(before));
            one.set_text(text(after));
            store.commit();
            REQUIRE(one.text() == text(after));
        }
    const std::string most(tiered::value_bytes_max, 'm');
    one.set_other(most);
    REQUIRE(one.other() == most);
    const std::string message = message_of(EFBIG, [&] { one.set_other(most + "!"); });
    CHECK(says(message, {"field `other`", "268435456 bytes", "268435455", "divide"}));
    REQUIRE(one.other() == most);
}

TEST_CASE("a transaction syncs its values once, however many there are")
{
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>()));
    for (const int count : {1, 2, 50}) {
        store.commit();
        const unsigned before = syncs;
        for (int i = 0; i < count; i++) {
            const person one = store.make<person>();
            one.set_image(image_of(unsigned(i)));
            one.home().set_street("street");
        }
        REQUIRE(syncs == before);
        store.commit();
        REQUIRE(syncs == before + 1);
    }
    const unsigned before = syncs;
    store.make<person>().set_age(1); // lies in the record
    store.commit();
    REQUIRE(syncs == before);
}

TEST_CASE("a file of values and its name are durable before a commit leads there")
{
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>()));
    const person one = store.make<person>();
    store.commit();
    order.clear();
    one.set_image(image_of(1));
    store.commit();
    REQUIRE(order == "vdc");
    order.clear();
    one.set_image(image_of(2)); // goes to the same file
    store.commit();
    REQUIRE(order == "vc");
}

// The kernel tells of a lost write once. The next sync of the file succeeds, though the values are not there.
TEST_CASE("values that could not be synced are not committed later")
{
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>()));
    const person one = store.make<person>();
    one.set_image(image_of(1));
    store.commit();
    one.set_image(image_of(2));
    syncs_to_fail = 1;
    CHECK(says(message_of(EIO, [&] { store.commit(); }), {"cannot sync values"}));
    order.clear();
    for (int i = 0; i < 2; i++)
        CHECK(says(message_of(EIO, [&] { store.commit(); }), {"open the store again"}));
    CHECK(order.empty());
    store.rollback();
    REQUIRE(std::ranges::equal(one.image(), image_of(1)));
}

TEST_CASE("what is not committed is gone, in all tiers")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    const bool dies = GENERATE(false, true); // else it rolls back
    auto store = std::make_unique<tiered::store>(directory / "s", with(remote));
    auto &all = store->root<tiered::vector<person>>("all");
    all.push_back(store->make<person>());
    fill(all[0], 5, all[0]);
    store->commit();
    const auto used = store->usage_of("pm").bytes;

    fill(all[0], 9, person());
    all.push_back(store->make<person>());
    fill(all[1], 1, all[0]);
    if (dies)
        store.reset();
    else
        store->rollback();
    if (dies)
        store = std::make_unique<tiered::store>(directory / "s", with(remote));
    auto &then = store->root<tiered::vector<person>>("all");
    REQUIRE(then.size() == 1);
    require_filled(then[0], 5, then[0], !dies);
    REQUIRE(store->usage_of("pm").bytes == used);
    REQUIRE(remote->values.size() == 1); // nothing is left of the other values
    REQUIRE(value_files(directory / "s") == 1);

    // The store goes on.
    fill(then[0], 6, then[0]);
    store->commit();
    require_filled(then[0], 6, then[0], true);
    REQUIRE(remote->values.size() == 1);
    store->destroy(then[0]);
    then.clear();
    store->commit();
    REQUIRE(store->usage_of("pm").bytes == 0);
    REQUIRE(store->usage_of("disk").bytes == 0);
    REQUIRE(value_files(directory / "s") == 0);
    REQUIRE(remote->values.empty());
}

TEST_CASE("a field goes to the first of its tiers that has room; if none has, nothing changes")
{
    test::Directory directory;
    tiered::options options = with(std::make_shared<Remote>());
    options.budgets = {{"pm", 800}, {"disk", 1000}};
    tiered::store store(directory / "s", options);
    const person p = store.make<person>(), q = store.make<person>();
    p.set_place(std::string(700, 'p')); // an eighth is left to fields that have no other tier
    REQUIRE(!p.place().is_copy());
    p.set_place(std::string(701, 'p'));
    REQUIRE(p.place().is_copy());
    REQUIRE(store.usage_of("pm").bytes == 0);
    q.set_place(std::string(999 - 701, 'q'));
    REQUIRE(!q.place().is_copy());
    q.set_place(std::string(700, 'r'));
    const std::string text = message_of(ENOSPC, [&] { q.set_name(std::string(950, 'n')); });
    INFO(text);
    CHECK(says(
        text, {"people::person", "`name`", "pm has 700 of 800", "disk has 701 of 1000", "budget"}));
    REQUIRE(q.name().empty());
    REQUIRE(p.place() == std::string(701, 'p'));
    message_of(ENOSPC, [&] { q.set_image(image_of(0)); });
    q.set_name(std::string(299, 'n'));
    message_of(ENOSPC, [&] { q.home().set_street("x"); });
    store.commit();
    REQUIRE(q.name() == std::string(299, 'n'));

    store.set_budget("pm", 100); // less than is in use
    message_of(ENOSPC, [&] { store.make<person>().set_name(std::string(13, 'x')); });
    store.make<person>().set_name(std::string(12, 'x')); // lies in its slot
    q.set_place("shorter");
    p.set_place("");
    p.home().set_street("");
    store.commit();
    REQUIRE(q.place() == "shorter");
    REQUIRE(p.place().empty());
}

TEST_CASE("values move down under pressure, and up when there is room")
{
    test::Directory directory;
    tiered::options options = with(std::make_shared<Remote>());
    auto store = std::make_unique<tiered::store>(directory / "s", options);
    auto &all = store->root<tiered::vector<person>>("all");
    for (int i = 0; i < 100; i++) {
        all.push_back(store->make<person>());
        all.back().set_place(std::string(1000, char('a' + i % 26)));
        all.back().set_height(i);
    }
    store->commit();
    const auto as_it_was = [&] {
        for (size_t i = 0; i < 100; i++) {
            REQUIRE(all[i].place() == std::string(1000, char('a' + i % 26)));
            REQUIRE(all[i].height() == double(i));
        }
    };
    REQUIRE(store->usage_of("disk").bytes == 0);
    store->set_budget("pm", 16000);
    store->settle();
    REQUIRE(store->usage_of("pm").bytes <= 14000);
    REQUIRE(store->usage_of("pm").bytes > 13000); // and not more than must
    REQUIRE(store->usage_of("pm").bytes + store->usage_of("disk").bytes == 100000);
    as_it_was();
    store->set_budget("pm", UINT64_MAX);
    store->settle();
    REQUIRE(store->usage_of("disk").bytes == 0);
    as_it_was();
    REQUIRE(value_files(directory / "s") == 0);

    // In the background, as commits go on.
    store->set_budget("pm", 16000);
    for (int i = 0; i < 1000 && store->usage_of("pm").bytes > 14000; i++) {
        usleep(1000);
        all[0].set_age(i);
        store->commit();
    }
    REQUIRE(store->usage_of("pm").bytes <= 14000);
    as_it_was();
}

TEST_CASE("a value that is set while it is being moved is the one that stays")
{
    test::Directory directory;
    tiered::options options = with(std::make_shared<Remote>());
    options.budgets["pm"] = 64 << 10;
    tiered::store store(directory / "s", options);
    auto &all = store.root<tiered::vector<person>>("all");
    std::vector<std::string> expected(200);
    for (size_t i = 0; i < expected.size(); i++)
        all.push_back(store.make<person>());
    for (unsigned step = 0; step < 3000; step++) {
        const size_t i = step * 7919 % expected.size();
        expected[i] = std::string(300 + step % 3, char('a' + step % 26));
        all[i].set_place(expected[i]);
        if (step % 10 == 0)
            store.set_budget("pm", (16 << 10) + step * 7 % (80 << 10));
        if (step % 3 == 0)
            store.commit();
        if (step % 97 == 0) {
            store.commit();
            all[i].set_place("gone");
            store.rollback();
        }
        REQUIRE(all[step % expected.size()].place() == expected[step % expected.size()]);
    }
    store.settle();
    for (size_t i = 0; i < expected.size(); i++)
        REQUIRE(all[i].place() == expected[i]);
}

namespace
{

// All values are in one extent, and the background waits when it has stored one.
class OneExtent : public Remote
{
  public:
    uint64_t set(tiered::bytes value) override
    {
        const uint64_t place = uint64_t(1) << 32 | next_++;
        stored_[place].assign(value.begin(), value.end());
        if (std::this_thread::get_id() != program_) {
            has_copied = true;
            while (waits)
                std::this_thread::yield();
        }
        return place;
    }
    bool get(uint64_t place, std::span<std::byte> value) override
    {
        if (!stored_.contains(place))
            throw tiered::error(EBADMSG, "the value is gone");
        std::ranges::copy(stored_[place], value.begin());
        return true;
    }
    void discard(uint32_t) override { stored_.clear(); }
    uint64_t full_bytes(uint32_t) const override { return 0; }

    std::atomic<bool> has_copied = false, waits = true;

  private:
    const std::thread::id program_ = std::this_thread::get_id();
    uint32_t next_ = 0;
    std::map<uint64_t, std::vector<std::byte>> stored_;
};

} // namespace

TEST_CASE("an extent is not discarded while a copy that nobody knows yet lies there")
{
    using people::durable::note;
    test::Directory directory;
    const auto one = std::make_shared<OneExtent>();
    tiered::store store(directory / "s", with(one));
    const note moves = store.make<note>(), leaves = store.make<note>();
    moves.set_text(std::string(5000, 't'));
    leaves.set_other("other");
    store.commit();
    store.set_budget("pm", 1000);
    while (!one->has_copied)
        usleep(100);
    leaves.set_other(""); // no slot leads to the extent any more
    store.commit();
    one->waits = false;
    store.settle();
    REQUIRE(store.usage_of("pm").bytes == 0);
    REQUIRE(moves.text() == std::string(5000, 't'));
}

TEST_CASE("values move from memory to the disk, too")
{
    using people::durable::note;
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>()));
    const note one = store.make<note>();
    one.set_draft(std::string(5000, 'd'));
    store.commit();
    REQUIRE(store.usage_of("dram").bytes == 5000);
    store.set_budget("dram", 1000);
    store.settle();
    REQUIRE(store.usage_of("dram").bytes == 0);
    REQUIRE(one.draft() == std::string(5000, 'd'));
    store.set_budget("dram", UINT64_MAX);
    store.settle();
    REQUIRE(store.usage_of("disk").bytes == 0);
    REQUIRE(one.draft() == std::string(5000, 'd'));
}

TEST_CASE("a file of values is deleted when nothing of it is needed, or little")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    tiered::store store(directory / "s", with(remote));
    auto &all = store.root<tiered::vector<person>>("all");
    for (unsigned i = 0; i < 10000; i++) { // 100 MB: more than a file
        all.push_back(store.make<person>());
        all.back().set_image(image_of(i));
    }
    store.commit();
    REQUIRE(value_files(directory / "s") == 2);
    for (size_t i = 0; i < 6600; i++)
        if (i % 3 != 0) {
            store.destroy(all[i]);
            all[i] = person();
        }
    store.commit();
    store.settle();
    REQUIRE(value_files(directory / "s") == 1);
    for (unsigned i = 0; i < 10000; i++)
        if (all[i])
            REQUIRE(std::ranges::equal(all[i].image(), image_of(i)));
}

// LIBPM_OBJECTS: how many.
TEST_CASE("many objects have their values on the disk", "[many]")
{
    const uint64_t count = crash::from_environment("LIBPM_OBJECTS", 100'000);
    const auto statement = [](uint64_t i) { return std::to_string(i * 0x9e3779b97f4a7c15) + "."; };
    test::Directory directory("/var/tmp"); // not in memory
    auto options = with(std::make_shared<Remote>());
    options.max_size = UINT64_C(8) << 30;
    const auto require_all = [&](tiered::store &store, auto is_there) {
        uint64_t i = 0;
        for (const auto one : store.all<durable::account>()) {
            while (!is_there(i))
                i++;
            if (one.balance() != i || one.statement() != statement(i))
                FAIL("object " << i << " has another balance or statement");
            i++;
        }
        while (i < count && !is_there(i))
            i++;
        REQUIRE(i == count);
    };
    {
        tiered::store store(directory / "s", options);
        for (uint64_t i = 0; i < count; i++) {
            const auto one = store.make<durable::account>();
            one.set_balance(i);
            one.set_statement(statement(i));
            if (i % 10'000 == 0)
                store.commit();
        }
        store.commit();
    }
    {
        tiered::store store(directory / "s", options);
        require_all(store, [](uint64_t) { return true; });
        std::vector<durable::account> gone;
        for (const auto one : store.all<durable::account>())
            if (one.balance() % 4 != 0)
                gone.push_back(one);
        for (size_t i = 0; i < gone.size(); i++) {
            store.destroy(gone[i]);
            if (i % 10'000 == 0)
                store.commit();
        }
        store.settle();
    }
    tiered::store store(directory / "s", options);
    require_all(store, [](uint64_t i) { return i % 4 == 0; });
    uint64_t bytes = 0;
    for (const auto &file : fs::directory_iterator(directory / "s/values"))
        bytes += file.file_size();
    REQUIRE(bytes < 2 * store.usage_of("disk").bytes + (2 << 20));
}

TEST_CASE("damage is an error where it is read, and nowhere else")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    const std::string path = directory / "s";
    {
        tiered::store store(path, with(remote));
        auto &all = store.root<tiered::vector<person>>("all");
        for (int i = 0; i < 3; i++) {
            all.push_back(store.make<person>());
            fill(all.back(), i, person());
        }
        store.commit();
    }
    const std::string file = one_file(path);
    const std::string how = GENERATE("missing", "cut", "changed");
    if (how == "missing")
        fs::remove(file);
    if (how == "cut")
        fs::resize_file(file, 9999);
    if (how == "changed") {
        std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekp(100);
        bytes.put('x');
    }
    tiered::store store(path, with(remote));
    auto &all = store.root<tiered::vector<person>>("all");
    const std::string text =
        message_of(how == "missing" ? ENOENT : EBADMSG, [&] { all[0].image(); });
    INFO(text);
    CHECK(says(text, {"people::person 0x", "`image`", "00000001.values", "backup"}));
    if (how == "changed") {
        REQUIRE(std::ranges::equal(all[1].image(), image_of(1)));
        REQUIRE(all[0].home().street() == "street 0");
    }
    REQUIRE(all[0].age() == 0);
    REQUIRE(all[2].place() == "place 2");
    all[0].set_image(image_of(77));
    store.commit();
    REQUIRE(std::ranges::equal(all[0].image(), image_of(77)));

    remote->values.clear();
    const std::string lost = message_of(EBADMSG, [&] { all[1].diary(); });
    CHECK(says(lost, {"`diary`", "server"}));
}

TEST_CASE("who has no file descriptor left has not lost a value")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    uint64_t id = 0;
    {
        tiered::store store(directory / "s", with(remote));
        id = store.make<person>().durable_id();
        store.find<person>(id).set_image(image_of(3));
        store.commit();
    }
    tiered::store store(directory / "s", with(remote));
    const person one = store.find<person>(id);
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{3, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    std::string text;
    try {
        one.image();
    } catch (const tiered::error &error) {
        text = error.what();
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(says(text, {"field `image`", "Too many open files", "read it again"}));
    REQUIRE(std::ranges::equal(one.image(), image_of(3)));
}

TEST_CASE("files that a crash left behind are deleted, and those of others are not")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    {
        tiered::store store(directory / "s", with(remote));
        auto &all = store.root<tiered::vector<person>>("all");
        all.push_back(store.make<person>());
        fill(all[0], 1, person());
        store.commit();
    }
    std::ofstream(directory / "s/values/00000002.values") << "left over";
    std::ofstream(directory / "s/values/notes.txt") << "mine";
    tiered::store store(directory / "s", with(remote));
    REQUIRE(value_files(directory / "s") == 2);
    REQUIRE(fs::exists(directory / "s/values/notes.txt"));
    require_filled(store.root<tiered::vector<person>>("all")[0], 1, person(), false);
}

TEST_CASE("a store needs its tiers, and only one process has it")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    {
        tiered::store store(directory / "s", with(remote));
        store.make<person>().set_diary("dear diary");
        store.commit();
        const std::string text =
            message_of(EBUSY, [&] { tiered::store(directory / "s", with(remote)); });
        CHECK(says(text, {"container.pm"}));
    }
    tiered::options without;
    without.max_size = 1 << 30;
    const std::string text = message_of(EINVAL, [&] { tiered::store(directory / "s", without); });
    CHECK(says(text, {"`remote`", "options::tiers"}));
    without.create = false;
    message_of(ENOENT, [&] { tiered::store(directory / "none", without); });
    tiered::options unknown = with(remote);
    unknown.budgets["tape"] = 1;
    CHECK(says(message_of(EINVAL, [&] { tiered::store(directory / "s", unknown); }), {"`tape`"}));
}

TEST_CASE("collections work with the algorithms, and last")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    {
        tiered::store store(directory / "s", with(remote));
        auto &vector = store.root<tiered::vector<person>>("vector");
        auto &list = store.root<tiered::list<person>>("list");
        auto &by_name = store.root<tiered::map<tiered::string, person>>("by name");
        auto &by_age = store.root<tiered::hash_map<int, person>>("by age");
        for (int i = 0; i < 1000; i++) {
            const person p = store.make<person>();
            p.set_age(i * 37 % 1000);
            vector.push_back(p);
            list.push_front(p);
            by_name.emplace("a rather long name " + std::to_string(i), p);
            by_age.emplace(p.age(), p);
        }
        std::ranges::sort(vector, {}, &person::age);
        list.sort([](person a, person b) { return a.age() < b.age(); });
        store.commit();
        vector.clear();
        by_age.clear();
        store.rollback();
    }
    tiered::store store(directory / "s", with(remote));
    auto &vector = store.root<tiered::vector<person>>("vector");
    auto &list = store.root<tiered::list<person>>("list");
    REQUIRE(std::ranges::equal(vector, list));
    REQUIRE(std::ranges::is_sorted(vector, {}, &person::age));
    REQUIRE(std::ranges::count_if(vector, [](person p) { return p.age() < 10; }) == 10);
    auto &by_name = store.root<tiered::map<tiered::string, person>>("by name");
    REQUIRE(by_name.find("a rather long name 3")->second.age() == 111);
    REQUIRE(by_name.size() == 1000);
    auto &by_age = store.root<tiered::hash_map<int, person>>("by age");
    REQUIRE(by_age.at(999) == vector.back());
    const int sum =
        std::accumulate(by_age.begin(), by_age.end(), 0,
                        [](int before, const auto &one) { return before + one.second.age(); });
    REQUIRE(sum == 999 * 500);
}

TEST_CASE("two stores are open at once")
{
    test::Directory directory;
    tiered::options larger = with(std::make_shared<Remote>());
    larger.max_size = UINT64_C(8) << 30; // what counts is the size that the container was made with
    if (GENERATE(false, true))
        tiered::store(directory / "1", with(std::make_shared<Remote>())).commit();
    tiered::store one(directory / "1", larger);
    tiered::store two(directory / "2", with(std::make_shared<Remote>()));
    auto &in_one = one.root<tiered::map<tiered::string, person>>("m");
    auto &in_two = two.root<tiered::map<tiered::string, person>>("m");
    const std::string key(100, 'k');
    {
        const tiered::use use(one);
        in_one.emplace(key, one.make<person>());
    }
    in_two.emplace(key, two.make<person>());
    in_one.begin()->second.set_place("one");
    in_two.begin()->second.set_place("two");
    in_one.begin()->second.set_image(image_of(1));
    in_two.begin()->second.set_image(image_of(2));
    one.commit();
    two.rollback();
    REQUIRE(in_one.begin()->second.place() == "one");
    REQUIRE(std::ranges::equal(in_one.begin()->second.image(), image_of(1)));
    REQUIRE(in_one.begin()->first == key.c_str());
}

TEST_CASE("a backup has the container and the values of one commit")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    {
        tiered::store store(directory / "s", with(remote));
        auto &all = store.root<tiered::vector<person>>("all");
        for (int i = 0; i < 10; i++) {
            all.push_back(store.make<person>());
            fill(all.back(), i, person());
        }
        store.commit();
        fill(all[3], 30, person()); // not committed
        store.backup(directory / "copy");
        message_of(EEXIST, [&] { store.backup(directory / "copy"); });
        REQUIRE(!fs::exists(directory / "copy.new"));
        store.commit();
        for (const person p : all)
            store.destroy(p);
        all.clear();
        store.commit();
        REQUIRE(value_files(directory / "s") == 0);
    }
    fs::remove_all(directory / "s");
    // The server has no backup of its own.
    tiered::store copy(directory / "copy", with(remote));
    auto &all = copy.root<tiered::vector<person>>("all");
    REQUIRE(all.size() == 10);
    for (int i = 0; i < 10; i++) {
        REQUIRE(all[size_t(i)].age() == i);
        REQUIRE(std::ranges::equal(all[size_t(i)].image(), image_of(unsigned(i))));
        REQUIRE(all[size_t(i)].home().street() == "street " + std::to_string(i));
    }
}

// A type whose fields change from one version of the program to the next.
const std::vector<tiered::field> fields_before = {{"age", "int", 0, false, {}},
                                                  {"name", "std::string", 8, true, {"pm"}},
                                                  {"old", "int", 40, false, {}}};
const std::vector<tiered::field> fields_after = {{"age", "long", 0, false, {}},
                                                 {"name", "std::string", 8, false, {"pm"}},
                                                 {"young", "int", 40, false, {}}};

CHILD_PROCESS(has_version_before)
{
    static const tiered::schema type("test::changing", 48, fields_before, nullptr);
    tiered::store(arguments[0], with(std::make_shared<Remote>())).commit();
}

TEST_CASE("a store that another version of a type has written is refused, in words")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    REQUIRE(test::Process("has_version_before", {directory / "old"}).wait().status == 0);
    // A store that is open already does not know the type, and goes on.
    tiered::options options = with(remote);
    options.budgets["pm"] = 1 << 20;
    tiered::store open(directory / "s", options);
    static const tiered::schema type("test::changing", 48, fields_after, nullptr);
    REQUIRE(type.difference(type.text()).empty());
    open.settle();
    const std::string text =
        message_of(EMEDIUMTYPE, [&] { tiered::store(directory / "old", with(remote)); });
    INFO(text);
    CHECK(
        says(text, {"/old: was written by another version of `test::changing`",
                    "`age` was `int` and is `long`", "`name` was in the slot and is in the record",
                    "`young` is new", "`old` is gone", "open it with a program of that version"}));
}

TEST_CASE("a container opens with its own values only")
{
    test::Directory directory;
    tiered::options elsewhere = with(std::make_shared<Remote>());
    elsewhere.container = directory / "elsewhere.pm";
    const auto open = [&](const char *name, const tiered::options &options) {
        return std::make_unique<tiered::store>(directory / name, options);
    };
    const auto here = with(std::make_shared<Remote>());
    uint64_t id = 0;
    {
        const auto store = open("s", elsewhere);
        id = store->make<person>().durable_id();
        store->find<person>(id).set_image(image_of(1));
        store->commit();
    }
    open("other", here)->commit();
    // Without the option, with the container of another store, and with another directory.
    const std::string text = message_of(EINVAL, [&] { open("s", here); });
    CHECK(says(text, {"/s/container.pm", "/s/identity", "options::container"}));
    fs::copy_file(directory / "other/container.pm", directory / "s/container.pm",
                  fs::copy_options::overwrite_existing);
    message_of(EINVAL, [&] { open("s", here); });
    message_of(EINVAL, [&] { open("third", elsewhere); });
    REQUIRE(value_files(directory / "s") == 1);
    REQUIRE(std::ranges::equal(open("s", elsewhere)->find<person>(id).image(), image_of(1)));
}

TEST_CASE("a container opens with its own values only, if a tier of the user's has all of them")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    tiered::options elsewhere = with(remote);
    elsewhere.container = directory / "elsewhere.pm";
    uint64_t id = 0;
    {
        tiered::store store(directory / "s", elsewhere);
        id = store.make<person>().durable_id();
        store.find<person>(id).set_diary("diary");
        store.commit();
    }
    message_of(EINVAL, [&] { tiered::store(directory / "s", with(remote)); });
    tiered::store store(directory / "s", elsewhere);
    REQUIRE(store.find<person>(id).diary() == "diary");
    // An id of an object that is not there.
    message_of(EINVAL, [&] { store.find<person>(id + (UINT64_C(512) << 20)); });
    const uint64_t gone = store.make<people::durable::note>().durable_id();
    store.rollback();
    message_of(EINVAL, [&] { store.find<people::durable::note>(gone); });
}

TEST_CASE("only an object of the store is destroyed, and once")
{
    test::Directory directory;
    tiered::store store(directory / "s", with(std::make_shared<Remote>())),
        other(directory / "t", with(std::make_shared<Remote>()));
    const person one = store.make<person>(), another = store.make<person>();
    one.set_age(7);
    message_of(EINVAL, [&] { store.destroy(one.home()); });
    message_of(EINVAL, [&] { other.destroy(one); });
    message_of(EINVAL, [&] { other.make<person>().set_boss(one); });
    message_of(EINVAL, [&] { store.destroy(person()); });
    store.destroy(another);
    const std::string text = message_of(EINVAL, [&] { store.destroy(another); });
    CHECK(says(text, {"/s: no people::person has the id", "destroyed"}));
    REQUIRE(one.age() == 7);
    REQUIRE(std::ranges::distance(store.all<person>()) == 1);
    const std::unordered_set<person> set{one, one};
    REQUIRE(set.size() == 1);
}

TEST_CASE("a tier's name is its own")
{
    test::Directory directory;
    for (const std::string name :
         {"", "pm", "disk", "dram", "values", "identity", "container.pm", "../remote"}) {
        auto options = with(std::make_shared<Remote>());
        options.tiers[name] = std::make_shared<Remote>();
        message_of(EINVAL, [&] { tiered::store(directory / "s", options); });
    }
    auto options = with(std::make_shared<Remote>());
    options.tiers[std::string(32, 'a')] = std::make_shared<Remote>();
    message_of(EINVAL, [&] { tiered::store(directory / "s", options); });
    options.tiers.erase(std::string(32, 'a'));
    options.tiers[std::string(31, 'a')] = std::make_shared<Remote>();
    REQUIRE(tiered::store(directory / "s", options).usage_of(std::string(31, 'a')).bytes == 0);
}

// A tier that fails in every way a user's may.
class Failing : public Remote
{
  public:
    uint64_t set(tiered::bytes value) override
    {
        if (throws)
            throw std::runtime_error("the server is down");
        return Remote::set(value);
    }
    void free(uint64_t place) override
    {
        freed.push_back(place);
        if (throws)
            throw std::runtime_error("the server does not free");
    }
    std::vector<uint64_t> freed;
    std::atomic<bool> throws = false;
};

TEST_CASE("a tier that throws costs what it was asked for, and nothing else")
{
    test::Directory directory;
    const auto remote = std::make_shared<Failing>();
    auto options = with(remote);
    options.budgets["pm"] = 1000;
    tiered::store store(directory / "s", options);
    const auto one = store.make<people::durable::note>();
    one.set_other("old");
    store.commit();
    one.set_other("new");
    remote->throws = true;
    store.commit();
    REQUIRE(remote->freed.size() == 1);
    store.rollback();
    REQUIRE(one.other() == "new");
    const std::string text = message_of(EIO, [&] { one.set_other("newer"); });
    CHECK(says(text, {"field `other`", "the server is down"}));
    REQUIRE(one.other() == "new");
    // In the background nobody hears of it, and the value stays.
    one.set_text(std::string(800, 't'));
    store.set_budget("pm", 100);
    store.settle();
    REQUIRE(one.text() == std::string(800, 't'));
    REQUIRE(store.usage_of("pm").bytes == 800);
    remote->throws = false;
    store.set_budget("pm", 101);
    store.settle();
    REQUIRE(store.usage_of("pm").bytes == 0);
    REQUIRE(one.text() == std::string(800, 't'));
}

// A tier whose copy for a backup takes as long as something else.
class Slow : public Failing
{
  public:
    void copy(const fs::path &) override { during(); }
    std::function<void()> during;
};

TEST_CASE("nothing is freed while a backup copies it")
{
    test::Directory directory;
    const auto remote = std::make_shared<Slow>();
    tiered::store store(directory / "s", with(remote));
    const auto one = store.make<people::durable::note>();
    one.set_other("old");
    store.commit();
    remote->during = [&] {
        one.set_other("new");
        store.commit();
        REQUIRE(remote->freed.empty());
    };
    store.backup(directory / "b/");
    REQUIRE(fs::exists(directory / "b/container.pm"));
    REQUIRE(remote->freed.size() == 1);
    REQUIRE(one.other() == "new");
}

TEST_CASE("a backup that ends discards no extent with a copy that the next commit needs")
{
    using people::durable::note;
    class Copied : public OneExtent
    {
      public:
        void copy(const fs::path &) override { during(); }
        std::function<void()> during;
    };
    test::Directory directory;
    const auto one = std::make_shared<Copied>();
    tiered::store store(directory / "s", with(one));
    const note moves = store.make<note>(), leaves = store.make<note>();
    moves.set_text(std::string(5000, 't'));
    leaves.set_other("other");
    store.commit();
    one->waits = false;
    one->during = [&] {
        leaves.set_other(""); // no slot leads to the extent any more
        store.commit();
        store.set_budget("pm", 1000);
        while (!one->has_copied)
            usleep(100);
        usleep(50'000); // until the store knows of the copy
    };
    store.backup(directory / "b");
    store.settle();
    REQUIRE(store.usage_of("pm").bytes == 0);
    REQUIRE(moves.text() == std::string(5000, 't'));
}

TEST_CASE("a backup that ends in a transaction deletes nothing that a rollback wants")
{
    test::Directory directory;
    const auto remote = std::make_shared<Slow>();
    tiered::store store(directory / "s", with(remote));
    const person one = store.make<person>();
    one.set_image(image_of(1));
    store.commit();
    remote->during = [&] {
        store.make<person>().set_image(image_of(2));
        store.rollback();
        store.destroy(one);
    };
    store.backup(directory / "b");
    store.rollback();
    REQUIRE(std::ranges::equal(one.image(), image_of(1)));
}

TEST_CASE("what a rollback leaves in a file of values does not stay for ever")
{
    test::Directory directory;
    const auto options = with(std::make_shared<Remote>());
    {
        tiered::store store(directory / "s", options);
        store.make<person>().set_image(image_of(1));
        store.commit();
        for (unsigned i = 0; i < 200; i++)
            store.make<person>().set_image(image_of(i));
        store.rollback();
    }
    REQUIRE(fs::file_size(one_file(directory / "s")) > 1 << 20);
    tiered::store store(directory / "s", options);
    store.settle();
    REQUIRE(fs::file_size(one_file(directory / "s")) == 10000);
    REQUIRE(std::ranges::equal((*store.all<person>().begin()).image(), image_of(1)));
}

TEST_CASE("on a full disk a setter or a commit throws, and the last commit is whole", "[disk]")
{
    test::Disk disk(40 << 20);
    tiered::options options = with(std::make_shared<Remote>());
    if (test::engine() != "log")
        options.engine = PM_ENGINE_AUTO;
    auto store = std::make_unique<tiered::store>(disk / "s", options);
    const auto all = [&]() -> auto & {
        return store->root<tiered::vector<durable::account>>("all");
    };
    const auto owner = [](size_t i) {
        return std::to_string(i) +
               std::string(400, (char)('a' + i % 26)); // of another all bytes differ
    };
    for (size_t i = 0; i < 20000; i++) {
        all().push_back(store->make<durable::account>());
        all().back().set_owner(owner(i));
    }
    store->commit();
    disk.fill();
    unsigned refused = 0;
    const auto may_refuse = [&](auto call) {
        try {
            call();
        } catch (const tiered::error &error) {
            REQUIRE(error.code().value() == ENOSPC);
            refused++;
        }
    };
    for (size_t i = 0; i < all().size(); i++)
        may_refuse([&] {
            all()[i].set_balance(i + 1);
            all()[i].set_owner(owner(i + 1));
        });
    may_refuse([&] { store->commit(); });
    REQUIRE(refused > 0);
    store->rollback();
    for (size_t i = 0; i < all().size(); i++) {
        REQUIRE(all()[i].balance() == 0);
        REQUIRE(all()[i].owner() == owner(i));
    }
    disk.free_all();
    for (size_t i = 0; i < all().size(); i++)
        all()[i].set_owner(owner(i + 1));
    store->commit();
    store.reset();
    options.engine = PM_ENGINE_AUTO; // opens a store of each engine
    store = std::make_unique<tiered::store>(disk / "s", options);
    REQUIRE(all().back().owner() == owner(all().size()));
}

TEST_CASE("settle() ends if the container has no room for what should move up")
{
    test::Directory directory;
    auto options = with(std::make_shared<Remote>());
    options.max_size = 16 << 20;
    options.budgets["pm"] = 0;
    tiered::store store(directory / "s", options);
    for (int i = 0; i < 300; i++)
        store.make<person>().set_place(std::string(100'000, char('a' + i % 26)));
    store.commit();
    store.set_budget("pm", UINT64_MAX);
    store.settle();
    REQUIRE(store.usage_of("pm").bytes > 1 << 20);
    REQUIRE(store.usage_of("disk").bytes > 1 << 20);
    int i = 0;
    for (const person one : store.all<person>())
        REQUIRE(one.place() == std::string(100'000, char('a' + i++ % 26)));
}

namespace
{

tiered::options with_little_memory()
{
    tiered::options options = with(std::make_shared<Remote>());
    options.budgets["pm"] = 100'000;
    return options;
}

std::string place_of(int i)
{
    return std::string(875, char('a' + i % 26));
}

// A hundred persons with these places, committed.
std::vector<person> hundred_places(tiered::store &store)
{
    std::vector<person> all;
    for (int i = 0; i < 100; i++) {
        all.push_back(store.make<person>());
        all.back().set_place(place_of(i));
    }
    store.commit();
    return all;
}

} // namespace

TEST_CASE("a field without a choice gets the room of those that have one, at once")
{
    test::Directory directory;
    tiered::store store(directory / "s", with_little_memory());
    const std::vector<person> all = hundred_places(store);
    REQUIRE(store.usage_of("pm").bytes == 87'500);
    const std::string_view shown = all[0].place();
    const auto fill = [&] {
        for (int i = 0; i < 100; i++)
            all[size_t(i)].set_motto(std::string(900, char('A' + i % 26)));
    };
    fill();
    REQUIRE(shown == std::string(875, 'a')); // until the commit
    for (const bool commits : {false, true}) {
        if (commits) {
            fill();
            store.commit();
        } else {
            store.rollback();
        }
        for (int i = 0; i < 100; i++) {
            REQUIRE(all[size_t(i)].place() == place_of(i));
            REQUIRE(all[size_t(i)].motto() ==
                    (commits ? std::string(900, char('A' + i % 26)) : ""));
        }
    }
    REQUIRE(store.usage_of("pm").bytes <= 100'000);
}

TEST_CASE("a value that has made room stays, if the transaction is rolled back")
{
    test::Directory directory;
    tiered::store store(directory / "s", with_little_memory());
    const std::vector<person> all = hundred_places(store);
    for (const person one : all)
        one.set_motto(std::string(900, 'm'));
    store.rollback();
    store.commit();
    store.set_budget("pm", UINT64_MAX);
    for (const person one : all) // would take the memory of a value that has left
        one.set_motto(std::string(875, 'm'));
    for (int i = 0; i < 100; i++)
        REQUIRE(all[size_t(i)].place() == place_of(i));
}

TEST_CASE("a short value stays in its slot, whatever room is needed")
{
    test::Directory directory;
    auto options = with(std::make_shared<Remote>());
    options.budgets["pm"] = 1000;
    tiered::store store(directory / "s", options);
    const person small = store.make<person>(), large = store.make<person>(),
                 one = store.make<person>();
    small.set_place("short");
    large.set_place(std::string(800, 'l'));
    const auto shown = small.place();
    one.set_motto(std::string(900, 'm'));
    REQUIRE(large.place().is_copy());
    REQUIRE(shown == "short");
    REQUIRE(!small.place().is_copy());
    one.set_motto(std::string(400, 'm'));
    large.set_place(std::string(450, 'l'));
    REQUIRE(!large.place().is_copy());
    one.set_motto(std::string(700, 'n')); // it grows by 300, and has room for them
    REQUIRE(one.motto() == std::string(700, 'n'));
    large.set_motto(small.place());
    store.commit();
    REQUIRE(large.motto() == "short");
}

TEST_CASE("what was in memory takes none of its budget in the next run")
{
    test::Directory directory;
    auto options = with(std::make_shared<Remote>());
    options.budgets["dram"] = 100;
    uint64_t id = 0;
    for (int run = 0; run < 3; run++) {
        tiered::store store(directory / "s", options);
        REQUIRE(store.usage_of("dram").bytes == 0);
        if (run > 0)
            REQUIRE(store.find<person>(id).guess().empty());
        const person one = store.make<person>();
        one.set_guess(std::string(90, char('0' + run)));
        if (run == 2)
            store.find<person>(id).set_guess("0123456789");
        REQUIRE(store.usage_of("dram").bytes == (run == 2 ? 100 : 90));
        store.commit();
        REQUIRE(one.guess() == std::string(90, char('0' + run)));
        id = one.durable_id();
    }
}

TEST_CASE("collections stay in the store of the collection that they are in")
{
    test::Directory directory;
    const auto remote = std::make_shared<Remote>();
    const std::string text(100, 'x');
    {
        tiered::store first(directory / "a", with(remote)), second(directory / "b", with(remote));
        auto &strings = first.root<tiered::vector<tiered::string>>("strings");
        strings.emplace_back(text);
        strings.push_back(
            second.root<tiered::vector<tiered::string>>("strings").emplace_back(text));
        strings[1] = tiered::string(text + "y"); // made in `second`
        first.root<tiered::vector<tiered::vector<int>>>("numbers").resize(3);
        first.root<tiered::vector<tiered::vector<int>>>("numbers")[2].push_back(7);
        first
            .root<tiered::map<tiered::string, tiered::list<tiered::string>>>(
                "map")[tiered::string(text)]
            .emplace_back(text);
        first.root<tiered::hash_map<int, tiered::string>>("hash")[1] = text;
        first.commit();
        second.commit();
    }
    tiered::store first(directory / "a", with(remote));
    const auto &strings = first.root<tiered::vector<tiered::string>>("strings");
    REQUIRE(strings[0] == text.c_str());
    REQUIRE(strings[1] == (text + "y").c_str());
    REQUIRE(first.root<tiered::vector<tiered::vector<int>>>("numbers")[2][0] == 7);
    const auto &map = first.root<tiered::map<tiered::string, tiered::list<tiered::string>>>("map");
    REQUIRE(map.begin()->first == text.c_str());
    REQUIRE(map.begin()->second.front() == text.c_str());
    REQUIRE(first.root<tiered::hash_map<int, tiered::string>>("hash").at(1) == text.c_str());
    STATIC_REQUIRE(tiered::can_last<tiered::map<tiered::string, tiered::vector<int>>>);
    STATIC_REQUIRE(tiered::can_last<tiered::vector<person>>);
    STATIC_REQUIRE(!tiered::can_last<tiered::vector<std::string>>);
    STATIC_REQUIRE(!tiered::can_last<tiered::map<int, int *>>);
    const std::string message =
        message_of(EINVAL, [&] { first.root<tiered::list<int>>("strings"); });
    CHECK(says(message, {"is a std::vector<", "list<int"}));
}
