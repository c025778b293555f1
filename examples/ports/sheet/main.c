/* sheet: a spreadsheet. It reads its commands (see command.c) from standard input. */
#include "sheet.h"

#include <err.h>
#include <libpm.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open("sheet.pm", &options);
    struct sheet *sheet = c && pm_getroot(c) ? pm_getroot(c) : new_sheet();
    if (!c || pm_setroot(c, sheet, 0) != 0)
        errx(1, "%s", pm_errormsg());
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        execute(sheet, line);
        if (pm_commit(c) != 0)
            errx(1, "%s", pm_errormsg());
        fflush(stdout);
    }
    return 0;
}
