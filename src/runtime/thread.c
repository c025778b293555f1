/* Threads of code compiled by `pmcc --discover` begin in a frame of libpm, see thread_entry.S. */
#include "runtime/heap.h"

#include "runtime/announce.h"

#include <errno.h>
#include <stdlib.h>

/* Takes a struct start, and frees it. */
__attribute__((visibility("hidden"))) void *runtime_thread_entry(void *start);

struct start { /* thread_entry.S knows this layout */
    void *(*function)(void *);
    void *argument;
};

EXPORT int pm__pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*function)(void *), void *argument)
{
    struct start *start = malloc(sizeof *start); // libc's, because it is no object of the program
    if (!start)
        return EAGAIN;
    *start = (struct start){function, argument};
    announce_object(thread);
    int error = pthread_create(thread, attributes, runtime_thread_entry, start);
    if (error)
        free(start);
    return error;
}
