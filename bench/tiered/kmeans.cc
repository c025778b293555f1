/*
 * k-means (George et al., section 4.1), once with enough memory, and once with less than the data take. NO-PM
 * reads a file of Protocol Buffers' messages and makes objects of them. With too little memory it does so in
 * each pass (`no-pm-capped`). ALL-PM opens a store.
 *
 *     PEER: make, no-pm, no-pm-capped, all-pm
 */
#include "tiered/kmeans.h"
#include "tiered/program.h"

#include "points.pb.h"
#include "types.durable.hpp"

#include <optional>

using bench::Job;
using bench::durable::point;

namespace
{

constexpr uint64_t memory_limit = 512 << 20;

void make(const Job &job)
{
    bench::PointSource source;
    bench::write_messages<bench::stored::Point>(job.messages(), job.count, [&](auto &message) {
        const bench::Point next = source.next();
        message.mutable_coordinates()->Add(next.begin(), next.end());
    });
    bench::PointSource again;
    tiered::store store = job.open("points");
    bench::make_objects(store, job.count,
                        [&] { store.make<point>().set_coordinates(again.next()); });
}

bench::Point point_of(const bench::stored::Point &message)
{
    bench::Point point;
    std::copy_n(message.coordinates().begin(), bench::dimensions, point.begin());
    return point;
}

double run(const Job &job)
{
    if (job.peer == "all-pm") {
        const tiered::store store = job.open("points");
        return bench::kmeans([&](auto each) {
            for (const point one : store.all<point>())
                each(one.coordinates());
        });
    }
    if (job.peer == "no-pm-capped")
        return bench::kmeans([&](auto each) {
            bench::read_messages<bench::stored::Point>(job.messages(), [&](const auto &message) {
                const bench::Point one = point_of(message);
                each(one);
            });
        });
    std::vector<bench::Point> points;
    points.reserve(job.count);
    bench::read_messages<bench::stored::Point>(
        job.messages(), [&](const auto &message) { points.push_back(point_of(message)); });
    return bench::kmeans([&](auto each) {
        for (const bench::Point &one : points)
            each(one);
    });
}

} // namespace

int main(int argc, char **argv)
{
    std::optional<bench::MemoryLimit> limit;
    if (std::string(argv[1]).find("capped") != std::string::npos)
        limit.emplace(memory_limit);
    return bench::run_peers(argc, argv, [&](const Job &job) {
        if (job.peer == "make") {
            make(job);
            return;
        }
        const uint64_t begin = bench::now_ns();
        const double error = run(job);
        const double ns = double(bench::now_ns() - begin);
        bench::emit({"kmeans",
                     {std::to_string(job.count), limit ? "512 MiB" : "enough"},
                     job.peer == "no-pm-capped" ? "no-pm" : job.peer,
                     ns});
        std::cerr << job.peer << ": error " << error << "\n";
    });
}
