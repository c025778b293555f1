/* Threads of code compiled by `pmcc --discover` begin in a frame of ours, see thread_entry.S. */
#include "runtime/heap.h"

#include "runtime/announce.h"

#include <errno.h>
#include <stdlib.h>

/* Takes a struct start, which it frees. */
__attribute__((visibility("hidden"))) void *runtime_thread_entry(void *start);

struct start { /* as thread_entry.S has it */
    void *(*function)(void *);
    void *argument;
};

EXPORT int pm__pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*function)(void *), void *argument)
{
    struct start *start = malloc(sizeof *start); // libc's: it is no object of the program
    if (!start)
        return EAGAIN;
    *start = (struct start){function, argument};
    announce_object(thread);
    int error = pthread_create(thread, attributes, runtime_thread_entry, start);
    if (error)
        free(start);
    return error;
}
