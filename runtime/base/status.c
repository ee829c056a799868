#include "keel/status.h"

#include "runtime/base/export.h"

KEEL_EXPORT const char *keel_status_text(keel_status status)
{
    switch (status) {
#define X(name, value, text)                                                                                           \
    case name:                                                                                                         \
        return text;
        KEEL_STATUS_TABLE(X)
#undef X
    }
    return "unknown status";
}

KEEL_EXPORT const char *keel_status_name(keel_status status)
{
    switch (status) {
#define X(name, value, text)                                                                                           \
    case name:                                                                                                         \
        return #name;
        KEEL_STATUS_TABLE(X)
#undef X
    }
    return "KEEL_ERR_UNKNOWN";
}
