/* The public calls as a table, around which wrappers can be put: one that counts calls (trace.h), or one in which
 * replicas of a rank check each other before a call counts. Of each call keel_NAME that calls.inc lists there is
 *
 *   call_NAME   what it does, on the process's instance (public_*.c and others)
 *   keel_NAME   what programs call (calls.c): the wrapper's, if there is one, else call_NAME. Of NEAR_CALL, where a
 *               look at one more word would be felt, in public_rma.c
 *
 * A wrapper is a table of its own with something in every place; what it does not want to see is a copy of what was
 * there before. Inside the library nobody calls keel_NAME: what a program calls once passes a wrapper once. */
#ifndef KEEL_CLIENT_API_CALLS_H
#define KEEL_CLIENT_API_CALLS_H

#include <keel/keel.h>

#include "runtime/base/export.h"

// NOLINTBEGIN(bugprone-macro-parentheses) names, types and lists in parentheses
struct api_calls {
#define STATUS_CALL(name, parameters, arguments) keel_status(*name) parameters;
#define VALUE_CALL(result, name, parameters, arguments) result(*name) parameters;
#define VOID_CALL(name, parameters, arguments) void(*name) parameters;
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
};

#define STATUS_CALL(name, parameters, arguments) keel_status call_##name parameters;
#define VALUE_CALL(result, name, parameters, arguments) result call_##name parameters;
#define VOID_CALL(name, parameters, arguments) void call_##name parameters;
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
// NOLINTEND(bugprone-macro-parentheses)

/* "keel_NAME" of each, in the order of calls.inc. */
extern const char *const calls_names[];
/* What calls go to now. */
const struct api_calls *calls_now(void);
/* From now on all calls of the program go to this table, which stays. Returns what they went to before, which the
 * wrapper calls. In keel_init only, when the process is ready; a call that another thread is in goes on as it began. */
const struct api_calls *calls_wrap(const struct api_calls *wrapper);
#endif
