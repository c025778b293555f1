#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

int pm__fail(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    errno = error;
    return -1;
}

const char *pm__message(void)
{
    return message;
}
