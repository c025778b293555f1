/* sheet: a spreadsheet that takes its commands, see command.c, from standard input. */
#include "sheet.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct sheet *sheet = new_sheet();
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        execute(sheet, line);
        fflush(stdout);
    }
    return 0;
}
