/* log_container FILE: makes an empty container of the log engine. A port opens it with the engine that it has. */
#include <err.h>
#include <libpm.h>

int main(int argc, char **argv)
{
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_CREATE | PM_EXCLUSIVE | PM_MOVABLE,
                                 .engine = PM_ENGINE_LOG};
    if (argc != 2)
        errx(2, "usage: log_container FILE");
    pm_container *c = pm_open(argv[1], &options);
    if (!c || pm_close(c) != 0)
        errx(1, "%s", pm_errormsg());
    return 0;
}
