/* What a program holds by a pointer and gives back once: mutexes, task pools, requests, lists of members. The pointer is no address but the
 * number of a place here, and how often that was used: what was given back is not taken for what is there now, nor touched. */
#ifndef KEEL_CLIENT_API_LIVING_H
#define KEEL_CLIENT_API_LIVING_H

enum living_kind { LIVING_MUTEXES, LIVING_POOL, LIVING_REQUEST, LIVING_COVERED };

/* A number for an object that is to come; NULL: out of memory. */
void *living_take(enum living_kind kind);
void living_set(void *number, void *object);
/* The number is that of another object from now on, for which there is memory so. */
void living_become(void *number, enum living_kind kind, void *object);
/* NULL: none, of another kind, or given back. */
void *living_find(const void *number, enum living_kind kind);
/* NULL is allowed. */
void living_give_back(void *number);
/* In a fork's child: it holds nothing. */
void living_forget(void);
#endif
