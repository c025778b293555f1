#include "discover/report.h"

#include "harness/sample.h"

void bench::report(const char *table, const char *row, const char *peer, double ns,
                   uint64_t operations)
{
    emit({table, {row}, peer, ns, "ns", operations});
}
