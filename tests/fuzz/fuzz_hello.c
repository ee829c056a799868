/* The hello of a data connection, from somebody who does not know the secret, and (first byte odd) from a member. */
#include "runtime/net/hello.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t secret[32] = "known to nobody who fuzzes";
    struct hello hello = {0}, out;
    uint64_t last = 5;
    if (size < 1)
        return 0;
    memcpy(&hello, data + 1, size - 1 < sizeof hello ? size - 1 : sizeof hello);
    bool member = data[0] & 1;
    if (member)
        hello_sign(&hello, secret);
    bool opened = hello_open(&hello, size - 1, secret, 7, 3, 8, &out);
    if (opened && !(member && out.job == 7 && out.to_node == 3 && out.to_incarnation == 8))
        abort();
    if (opened && hello_is_new(&out, &last) && hello_is_new(&out, &last))
        abort(); /* once */
    return 0;
}
