/*
 * One field read in persistent memory, beside the same field of a raw struct in memory; and what counting costs.
 * Compiled twice, with and without TIERED_PROFILE.
 */
#include "tiered/kmeans.h"
#include "tiered/program.h"

#include "types.durable.hpp"

namespace
{

constexpr size_t objects = 100'000, passes = 200;

struct RawPerson {
    int32_t age;
    char rest[sizeof(bench::durable::select_person_record) - sizeof(int32_t)];
};

template <class Each> double ns_of(size_t count, Each each)
{
    const uint64_t begin = bench::now_ns();
    for (size_t pass = 0; pass < passes; pass++)
        each();
    return double(bench::now_ns() - begin) / double(count * passes);
}

} // namespace

/* In turns, so that what the machine does meanwhile happens to both. */
void run(const bench::Job &job)
{
    tiered::store store = job.open("access");
    std::vector<RawPerson> raw(objects);
    std::vector<bench::durable::select_person> durable;
    std::vector<const RawPerson *> pointers;
    bench::make_objects(store, objects, [&] {
        durable.push_back(store.make<bench::durable::select_person>());
        durable.back().set_age(int32_t(durable.size()));
    });
    for (size_t i = 0; i < objects; i++) {
        raw[i].age = int32_t(i + 1);
        pointers.push_back(&raw[i]);
    }
    volatile int64_t result = 0;
    const double of_raw = ns_of(objects, [&] {
        int64_t sum = 0;
        for (const RawPerson *one : pointers)
            sum += one->age;
        result = sum;
    });
    const double of_durable = ns_of(objects, [&] {
        int64_t sum = 0;
        for (const auto one : durable)
            sum += one.age();
        result = sum;
    });
    std::vector<bench::durable::point> points;
    bench::PointSource source;
    bench::make_objects(store, objects, [&] {
        points.push_back(store.make<bench::durable::point>());
        points.back().set_coordinates(source.next());
    });
    const uint64_t begin = bench::now_ns();
    const double error = bench::kmeans([&](auto each) {
        for (const auto one : points)
            each(one.coordinates());
    });
    const double kmeans_ns =
        double(bench::now_ns() - begin) / double(objects * bench::kmeans_iterations);
    const std::string suffix = tiered::is_profiled ? "profiled" : "tiered";
    bench::emit({"tiered_access", {"read of a field"}, suffix, of_durable, "ns", objects * passes});
    if (!tiered::is_profiled)
        bench::emit({"tiered_access", {"read of a field"}, "raw", of_raw, "ns", objects * passes});
    bench::emit({"tiered_access", {"a point of k-means"}, suffix, kmeans_ns, "ns", objects});
    std::cerr << "error " << error << "\n";
}

int main(int argc, char **argv)
{
    return bench::run_peers(argc, argv, run);
}
