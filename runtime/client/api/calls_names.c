/* What the public calls are called. Pure. */
#include "runtime/client/api/calls.h"

const char *const calls_names[] = {
#define STATUS_CALL(name, parameters, arguments) "keel_" #name,
#define VALUE_CALL(result, name, parameters, arguments) "keel_" #name,
#define VOID_CALL(name, parameters, arguments) "keel_" #name,
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
};
