#include "micro/pmemobj_ops.h"

#include <string.h>

int pmemobj_ops_allocate(PMEMobjpool *pool, PMEMoid *oids, size_t count, size_t size)
{
    volatile int result = 0;
    TX_BEGIN(pool)
    {
        for (size_t i = 0; i < count; i++)
            oids[i] = pmemobj_tx_alloc(size, 1);
    }
    TX_ONABORT
    {
        result = -1;
    }
    TX_END
    return result;
}

int pmemobj_ops_free(PMEMobjpool *pool, const PMEMoid *oids, size_t count)
{
    volatile int result = 0;
    TX_BEGIN(pool)
    {
        for (size_t i = 0; i < count; i++)
            pmemobj_tx_free(oids[i]);
    }
    TX_ONABORT
    {
        result = -1;
    }
    TX_END
    return result;
}

int pmemobj_ops_pairs(PMEMobjpool *pool, size_t count, size_t size)
{
    volatile int result = 0;
    TX_BEGIN(pool)
    {
        for (size_t i = 0; i < count; i++)
            pmemobj_tx_free(pmemobj_tx_alloc(size, 1));
    }
    TX_ONABORT
    {
        result = -1;
    }
    TX_END
    return result;
}

int pmemobj_ops_update(PMEMobjpool *pool, PMEMoid array, const size_t *offsets, size_t count,
                       size_t length, int byte)
{
    char *base = pmemobj_direct(array);
    volatile int result = 0;
    TX_BEGIN(pool)
    {
        for (size_t i = 0; i < count; i++) {
            pmemobj_tx_add_range(array, offsets[i], length);
            memset(base + offsets[i], byte, length);
        }
    }
    TX_ONABORT
    {
        result = -1;
    }
    TX_END
    return result;
}
