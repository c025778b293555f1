#include "simulation/addresses.h"

#include "container/container.h"

#include <fcntl.h>
#include <unistd.h>

static struct container nobody = {.fd = -1};
static uint64_t taken[2], size;

static bool read_container(const char *path, struct format_header *header,
                           struct format_state *state)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    bool read = pread(fd, header, sizeof *header, FORMAT_HEADER_A) == sizeof *header &&
                pread(fd, state, sizeof *state, FORMAT_STATE) == sizeof *state;
    close(fd);
    return read;
}

bool addresses_are_odd(const char *path)
{
    struct format_header header;
    struct format_state state;
    return read_container(path, &header, &state) &&
           __builtin_popcountll(seal_payload(state.base_epoch)) % 2 == 1;
}

void take_addresses_of(const char *path)
{
    struct format_header header;
    struct format_state state;
    if (!read_container(path, &header, &state))
        return;
    const uint64_t words[2] = {state.base, state.target};
    size = header.max_size;
    for (int i = 0; i < 2; i++) {
        uint64_t base = seal_payload(words[i]);
        taken[i] = base && arena_take(base, size, &nobody) ? base : 0;
    }
}

void give_addresses_back(void)
{
    for (int i = 0; i < 2; i++) {
        if (taken[i])
            arena_give_back(taken[i], size);
        taken[i] = 0;
    }
}
