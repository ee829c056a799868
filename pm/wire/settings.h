/* The settings of a job as a member of its description (MSG_CONFIG): the one place where they are written down and
 * read. */
#ifndef KEEL_PM_SETTINGS_H
#define KEEL_PM_SETTINGS_H

#include <jansson.h>

#include "runtime/base/job_settings.h"

json_t *settings_encode(const struct job_settings *s);
/* False if it is not what settings_encode makes of settings that keelrun allows; *s is then to be freed, too. */
bool settings_decode(struct job_settings *s, const json_t *object);
/* {sets, native [..]}, as in struct replica_map; null: the program runs once. */
json_t *settings_replicas(const struct replica_map *m);
/* Of [levels][stride] domains those of the nodes and spares stay, and each number behind them, for a node that comes
 * later, has a domain of its own. */
void settings_make_room(struct job_settings *s, int stride);
/* The arrays of decoded settings. */
void settings_free(struct job_settings *s);
#endif
