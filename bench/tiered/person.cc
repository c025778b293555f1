/*
 * Person search: find all persons of an age, among persons that have an image of 10 KB
 * each. Their bytes in persistent memory, the process's resident memory, and the time of a scan.
 *
 *     PEER: "make X" and X, where X is all-pm, select-pm, sqlite, rocksdb
 */
#include "tiered/data.h"
#include "tiered/program.h"

#include "types.durable.hpp"

#include <rocksdb/db.h>
#include <sqlite3.h>

using bench::Job;

namespace
{

constexpr int wanted_age = 42;

void demand(bool holds, const std::string &what)
{
    if (!holds)
        throw std::runtime_error(what);
}

double resident_bytes()
{
    std::ifstream statm("/proc/self/statm");
    uint64_t all = 0, resident = 0;
    statm >> all >> resident;
    return double(resident) * 4096;
}

/** `scan()` returns how many persons it has found. */
template <class Scan> void report(const Job &job, Scan scan)
{
    std::vector<double> times;
    size_t found = 0;
    for (int i = 0; i < 5; i++) {
        const uint64_t begin = bench::now_ns();
        found = scan();
        times.push_back(double(bench::now_ns() - begin));
    }
    bench::emit({"person", {"first scan"}, job.peer, times[0]});
    std::ranges::sort(times);
    bench::emit({"person", {"scan"}, job.peer, times[2]});
    bench::emit({"person", {"resident memory"}, job.peer, resident_bytes(), "bytes"});
    std::cerr << job.peer << ": found " << found << "\n";
}

// ---- Tiered

std::string name_of(const Job &job)
{
    return job.peer.substr(job.peer.rfind(' ') + 1);
}

template <class Type> void make_tiered(const Job &job)
{
    tiered::store store = job.open(name_of(job));
    bench::PersonSource source;
    bench::make_objects(store, job.count, [&] {
        const bench::Person next = source.next();
        const Type one = store.make<Type>();
        one.set_age(next.age);
        one.set_name(next.name);
        one.set_place(next.place);
        one.set_image(std::span<const std::byte, bench::image_bytes>(next.image));
    });
}

// What a C++ program has of a person in memory. No name and no place is too long to lie in its std::string.
struct Plain {
    int32_t age;
    std::string name, place;
};

/** Bytes of persistent memory: of the values, of a plain struct, of all objects, of the container. */
void report_memory(const Job &job, size_t image)
{
    const auto say = [&](const char *what, uint64_t bytes) {
        bench::emit({"person_memory", {name_of(job)}, what, double(bytes), "bytes"});
    };
    bench::PersonSource source;
    uint64_t values = 0;
    for (size_t i = 0; i < job.count; i++) {
        const bench::Person next = source.next();
        values += sizeof next.age + next.name.size() + next.place.size() + image;
    }
    say("values", values);
    say("struct", job.count * (sizeof(Plain) + image));
    const std::string path = job.container(name_of(job));
    const pm::container container(path);
    uint64_t objects = 0;
    size_t bytes;
    for (void *at = nullptr; (at = pm_next_object(container.get(), at, &bytes));)
        objects += bytes;
    say("objects", objects);
    say("container", std::filesystem::file_size(path));
}

template <class Type> void scan_tiered(const Job &job, size_t image)
{
    {
        const tiered::store store = job.open(name_of(job));
        report(job, [&] {
            return size_t(std::ranges::count(store.all<Type>(), wanted_age, &Type::age));
        });
    }
    report_memory(job, image);
}

// ---- SQLite: the image in a table of its own

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3 *)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)>;

Database open_sqlite(const Job &job)
{
    sqlite3 *database = nullptr;
    demand(sqlite3_open((job.file / "persons.sqlite").c_str(), &database) == SQLITE_OK,
           "SQLite does not open");
    return {database, sqlite3_close};
}

void execute(const Database &database, const char *what)
{
    demand(sqlite3_exec(database.get(), what, nullptr, nullptr, nullptr) == SQLITE_OK,
           sqlite3_errmsg(database.get()));
}

Statement prepare(const Database &database, const char *what)
{
    sqlite3_stmt *statement = nullptr;
    demand(sqlite3_prepare_v2(database.get(), what, -1, &statement, nullptr) == SQLITE_OK,
           sqlite3_errmsg(database.get()));
    return {statement, sqlite3_finalize};
}

void make_sqlite(const Job &job)
{
    const Database database = open_sqlite(job);
    execute(
        database,
        "PRAGMA journal_mode=WAL; CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, "
        "name TEXT, place TEXT); CREATE TABLE image (id INTEGER PRIMARY KEY, bytes BLOB); BEGIN");
    const Statement person = prepare(database, "INSERT INTO person VALUES (?, ?, ?, ?)");
    const Statement image = prepare(database, "INSERT INTO image VALUES (?, ?)");
    bench::PersonSource source;
    for (size_t i = 0; i < job.count; i++) {
        const bench::Person next = source.next();
        sqlite3_bind_int64(person.get(), 1, sqlite3_int64(i));
        sqlite3_bind_int(person.get(), 2, next.age);
        sqlite3_bind_text(person.get(), 3, next.name.c_str(), -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(person.get(), 4, next.place.c_str(), -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(image.get(), 1, sqlite3_int64(i));
        sqlite3_bind_blob(image.get(), 2, next.image.data(), int(next.image.size()), SQLITE_STATIC);
        demand(sqlite3_step(person.get()) == SQLITE_DONE &&
                   sqlite3_step(image.get()) == SQLITE_DONE,
               sqlite3_errmsg(database.get()));
        sqlite3_reset(person.get());
        sqlite3_reset(image.get());
    }
    execute(database, "COMMIT");
}

void scan_sqlite(const Job &job)
{
    const Database database = open_sqlite(job);
    const Statement count = prepare(database, "SELECT count(*) FROM person WHERE age = ?");
    report(job, [&] {
        sqlite3_reset(count.get());
        sqlite3_bind_int(count.get(), 1, wanted_age);
        demand(sqlite3_step(count.get()) == SQLITE_ROW, sqlite3_errmsg(database.get()));
        return size_t(sqlite3_column_int64(count.get(), 0));
    });
}

// ---- RocksDB: large values in blob files, as its manual advises

std::unique_ptr<rocksdb::DB> open_rocksdb(const Job &job)
{
    rocksdb::Options options;
    options.create_if_missing = true;
    options.enable_blob_files = true;
    options.min_blob_size = 4096;
    rocksdb::DB *database = nullptr;
    const auto status = rocksdb::DB::Open(options, job.file / "persons.rocksdb", &database);
    demand(status.ok(), status.ToString());
    return std::unique_ptr<rocksdb::DB>(database);
}

std::string key_of(char field, uint64_t person)
{
    char key[16];
    snprintf(key, sizeof key, "%c%010zu", field, size_t(person));
    return key;
}

void make_rocksdb(const Job &job)
{
    const auto database = open_rocksdb(job);
    bench::PersonSource source;
    for (size_t i = 0; i < job.count; i++) {
        const bench::Person next = source.next();
        rocksdb::WriteBatch batch;
        batch.Put(key_of('a', i), {reinterpret_cast<const char *>(&next.age), sizeof next.age});
        batch.Put(key_of('n', i), next.name);
        batch.Put(key_of('p', i), next.place);
        batch.Put(key_of('i', i),
                  {reinterpret_cast<const char *>(next.image.data()), next.image.size()});
        const auto status = database->Write({}, &batch);
        demand(status.ok(), status.ToString());
    }
    demand(database->CompactRange({}, nullptr, nullptr).ok(), "RocksDB does not compact");
}

void scan_rocksdb(const Job &job)
{
    const auto database = open_rocksdb(job);
    report(job, [&] {
        size_t found = 0;
        const std::unique_ptr<rocksdb::Iterator> at(database->NewIterator({}));
        for (at->Seek("a"); at->Valid() && at->key()[0] == 'a'; at->Next()) {
            int32_t age;
            memcpy(&age, at->value().data(), sizeof age);
            found += age == wanted_age;
        }
        return found;
    });
}

struct Peer {
    const char *name;
    void (*make)(const Job &), (*scan)(const Job &);
};

constexpr Peer peers[] = {
    {"all-pm", make_tiered<bench::durable::all_person>,
     [](const Job &job) { scan_tiered<bench::durable::all_person>(job, bench::image_bytes); }},
    {"select-pm", make_tiered<bench::durable::select_person>,
     [](const Job &job) { scan_tiered<bench::durable::select_person>(job, 0); }},
    {"sqlite", make_sqlite, scan_sqlite},
    {"rocksdb", make_rocksdb, scan_rocksdb},
};

} // namespace

int main(int argc, char **argv)
{
    return bench::run_peers(argc, argv, [](const Job &job) {
        const bool makes = job.peer.starts_with("make ");
        const std::string name = makes ? job.peer.substr(5) : job.peer;
        for (const Peer &peer : peers)
            if (peer.name == name)
                (makes ? peer.make : peer.scan)(job);
    });
}
