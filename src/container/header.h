/* Header copies: made at creation, read and judged at open. Private to this folder. */
#ifndef PM_CONTAINER_HEADER_H
#define PM_CONTAINER_HEADER_H

#include "container/container.h"

/* Fill in magic, version and checksum. */
void header_seal(struct format_header *header, uint32_t version);

/*
 * Read the header of the file open at `fd` from a whole copy. `*damaged` is the offset of the other copy
 * if that copy is damaged, else UINT64_MAX. Fails with EBADMSG or ENOTSUP.
 */
int header_read(int fd, const char *path, struct format_header *header, uint64_t *damaged);

#endif
