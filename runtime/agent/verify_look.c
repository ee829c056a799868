/* The other end of an audit: what a copy has. */
#include "runtime/agent/verify_int.h"

#include <sodium.h>

#include "runtime/agent/agent.h"
#include "runtime/base/words.h"

void verify_look(const struct agent *a, const struct msg_hash *m, struct said *said)
{
    const struct store_segment *s = m->at.slot < a->view.nodes ? store_find(&a->store, m->at.seg) : NULL;
    const struct store_copy *copy = store_copy(&a->store, m->at.seg, m->at.slot);
    said->here = true;
    said->status = !copy ? KEEL_ERR_STATE : copy->lost ? KEEL_ERR_DATA_LOST : KEEL_OK;
    said->generation = s ? a->view.copyset[copyset_of(m->at.slot, s->redundancy)].generation : 0;
    said->len = 0;
    if (said->status != KEEL_OK || m->at.offset > copy->bytes || m->bytes > copy->bytes - m->at.offset ||
        m->bytes > (m->exact ? (uint32_t)WIRE_BODY_MAX : VERIFY_BLOCK))
        return;
    if (m->exact) {
        said->len = m->bytes;
        words_load(said->bytes, copy->base + m->at.offset, m->bytes);
    } else {
        said->len = VERIFY_HASH;
        crypto_generichash(said->hash, VERIFY_HASH, copy->base + m->at.offset, m->bytes, NULL, 0);
    }
}

void verify_asked(struct agent *a, int from, const struct wire *w)
{
    struct said said;
    struct msg_hash m;
    struct wire answer;
    msg_hash_decode(w, &m);
    verify_look(a, &m, &said);
    msg_hashed_encode(
        &(struct msg_hashed){
            .len = said.len, .question = m.question, .status = said.status, .generation = said.generation},
        &answer);
    agent_tell(a, from, &answer, m.exact ? said.bytes : said.hash);
}
