/* The allocator's part of pm_check(): it checks every claim of its tables from both ends. */
#include "allocator/allocator.h"

#include "allocator/slab.h"
#include "base/error.h"
#include "container/contents.h"

#include <string.h>

static int check_slab(struct allocator *a, uint32_t segment)
{
    struct slab *s = slab_of(a, segment);
    const uint64_t *home = home_word(a->c, s->bitmap.offset);
    const uint64_t *shadow = shadow_word(a->c, s->bitmap.offset);
    bool committed = home_table(a->c)[segment] == shadow_table(a->c)[segment];
    for (uint32_t w = 0; w < s->bitmap.words; w++) {
        uint64_t offset = s->bitmap.offset + w * sizeof(uint64_t);
        uint64_t valid = bitmap_mask(w, 0, s->shape.objects);
        if (!seal_is_valid(shadow[w]) || (committed && !seal_is_valid(home[w])))
            return container_damaged(a->c, offset, "a bitmap's word is damaged");
        if (!contents_is_sound(shadow[w], w, s->shape.objects) ||
            (committed && !contents_is_sound(home[w], w, s->shape.objects)))
            return container_damaged(a->c, offset, "a bitmap claims slots beyond its slab");
        if ((w < s->bitmap.low || w >= s->bitmap.high) && home[w] != shadow[w])
            return container_damaged(a->c, offset, "a bitmap has changed outside any transaction");
        if (~(home[w] | shadow[w]) & valid && !s->listed && w < s->hint)
            return container_damaged(a->c, offset, "a slab with room is in no list");
    }
    /* P4: a page called fresh had no object at the last commit. */
    for (uint32_t slot = 0; slot < s->shape.objects; slot++) {
        struct page_range on = slot_pages(a, s, slot);
        bool fresh = txn_page_is_fresh(a->t, on.first) || txn_page_is_fresh(a->t, on.last);
        if (bitmap_has(home, slot) && fresh)
            return container_damaged(a->c, slot_offset(a, s, slot), "a live page would not be logged");
    }
    return 0;
}

static int check_segments(struct allocator *a)
{
    uint32_t segments = atomic_load(&a->c->segments);
    for (uint32_t i = 0; i < segments; i++) {
        uint64_t word = table_word(shadow_table(a->c), i);
        if (segment_kind(word) == SEGMENT_SLAB && check_slab(a, i) != 0)
            return -1;
    }
    return 0;
}

static int check_root(struct allocator *a)
{
    const uint64_t *root = shadow_word(a->c, a->t->root.offset);
    struct object object = {.size = 0};
    if (!seal_is_valid(root[0]) || !seal_is_valid(root[1]))
        return container_damaged(a->c, a->t->root.offset, "the root's words are damaged");
    if (root[0] == 0)
        return 0;
    if (find_object(a, a->c->base + seal_payload(root[0]), &object) != 0)
        return container_damaged(a->c, a->t->root.offset, "the root is no object");
    if (seal_payload(root[1]) > object.size)
        return container_damaged(a->c, a->t->root.offset + 8, "the root is larger than its object");
    return 0;
}

int allocator_check(struct allocator *a)
{
    return check_segments(a) != 0 ? -1 : check_root(a);
}
