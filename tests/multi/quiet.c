/* quiet barrier|begun|message|revoked FILE: whoever has left a collective, or has sent a message, may make no further
 * call for as long as it likes: the other one has what it needs. Two ranks on two nodes, and no connection between them
 * before. Rank 1 makes the file when it has got what it waited for; until then rank 0 makes no call. revoked: what rank
 * 1 sends, more than is sent to who does not look, is of no use any more, as rank 0 has revoked the group. Exit 0 if
 * all is right; it hangs if not. */
#include <keel/keel.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

static void meet(void)
{
    EXPECT(keel_barrier() == KEEL_OK);
}

static void meet_begun(void)
{
    keel_request *request;
    EXPECT(keel_group_barrier_begin(keel_group_world(), &request) == KEEL_OK);
    keel_status status;
    while ((status = keel_request_test(request, NULL)) == KEEL_IN_PROGRESS)
        ;
    EXPECT(status == KEEL_OK);
}

static void give_up(const char *file)
{
    char begun[4096];
    snprintf(begun, sizeof begun, "%s.begun", file);
    enum { BYTES = 64 << 20 };
    keel_group *group;
    keel_request *request;
    void *memory = calloc(1, BYTES);
    CHECK(keel_group_shrink(keel_group_world(), &group));
    if (keel_rank() == 1) {
        EXPECT(memory && keel_group_bcast_begin(group, 1, memory, BYTES, &request) == KEEL_OK);
        close(open(begun, O_CREAT | O_WRONLY, 0600));
        EXPECT(keel_request_wait(request, NULL) == KEEL_ERR_REVOKED);
        unlink(begun);
    } else {
        while (access(begun, F_OK) != 0)
            usleep(1000);
        CHECK(keel_group_revoke(group));
    }
    free(memory);
}

static void speak(void)
{
    int word = 17;
    if (keel_rank() == 0)
        EXPECT(keel_message_send(1, 3, &word, sizeof word) == KEEL_OK);
    else
        EXPECT(keel_message_receive(0, 3, &word, sizeof word, NULL, NULL) == KEEL_OK && word == 17);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    (void)unlink(argv[2]);
    EXPECT(keel_init() == KEEL_OK);
    EXPECT(keel_size() == 2);
    if (strcmp(argv[1], "barrier") == 0)
        meet();
    else if (strcmp(argv[1], "begun") == 0)
        meet_begun();
    else if (strcmp(argv[1], "revoked") == 0)
        give_up(argv[2]);
    else
        speak();
    if (keel_rank() == 1)
        close(open(argv[2], O_CREAT | O_WRONLY, 0600));
    while (keel_rank() == 0 && access(argv[2], F_OK) != 0)
        usleep(1000);
    EXPECT(keel_finalize() == KEEL_OK);
    if (keel_rank() == 0)
        unlink(argv[2]);
    return 0;
}
