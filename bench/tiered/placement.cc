/*
 * Accesses to persons whose fields have one of the sixteen placements. It prints the placement's number, the bytes
 * of persistent memory that the persons take, and nanoseconds. Compiled once for each placement, and once to count accesses.
 *
 *     MEMORY-DIRECTORY FILE-DIRECTORY
 */
#include "tiered/data.h"
#include "tiered/program.h"

#include "open.durable.hpp"

using bench::durable::open_person;

namespace
{

constexpr size_t objects = 5'000;

/* A short value lies in its slot. */
size_t taken(unsigned field, size_t bytes)
{
    const bool is_elsewhere = PLACEMENT >> field & 1;
    return is_elsewhere || bytes <= tiered::slot_inline_max ? 0 : (bytes + 15) / 16 * 16;
}

/* Some fields are read often, and others seldom. Nothing can be optimised away. */
unsigned read_all(const std::vector<open_person> &all)
{
    std::mt19937 random(6);
    unsigned sum = 0;
    const auto any = [&] { return all[random() % all.size()]; };
    for (size_t i = 0; i < 400'000; i++)
        sum += unsigned(any().age());
    for (size_t i = 0; i < 40'000; i++)
        sum += unsigned(any().name().size());
    for (size_t i = 0; i < 4'000; i++)
        sum += unsigned(any().place().size());
    for (size_t i = 0; i < 400; i++)
        sum += unsigned(any().image()[7]);
    return sum;
}

} // namespace

int main(int, char **argv)
{
    tiered::options options;
    options.container = std::filesystem::path(argv[1]) / "placed.pm";
    std::filesystem::remove(options.container);
    std::filesystem::remove_all(std::filesystem::path(argv[2]) / "placed");
    tiered::store store(std::filesystem::path(argv[2]) / "placed", options);
    std::vector<open_person> all;
    bench::PersonSource source;
    size_t bytes = 0;
    const uint64_t begin = bench::now_ns();
    bench::make_objects(store, objects, [&] {
        const bench::Person next = source.next();
        bytes += sizeof(open_person::durable_record_type) + taken(0, sizeof next.age) +
                 taken(1, next.name.size()) + taken(2, next.place.size()) +
                 taken(3, next.image.size());
        all.push_back(store.make<open_person>());
        all.back().set_age(next.age);
        all.back().set_name(next.name);
        all.back().set_place(next.place);
        all.back().set_image(std::span<const std::byte, bench::image_bytes>(next.image));
    });
    const unsigned sum = read_all(all);
    const uint64_t ns = bench::now_ns() - begin;
    if (tiered::is_profiled)
        store.write_profile(std::filesystem::path(argv[2]) / "profile.json");
    std::cout << PLACEMENT << ' ' << bytes << ' ' << ns << '\n';
    std::cerr << "sum " << sum << '\n';
}
