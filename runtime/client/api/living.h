/* What a program holds by a pointer and gives back once: groups, mutexes, task pools, requests, lists of members.
 * The pointer is no address but the number of a place here, and how often that was used: what was given back is not
 * taken for what is there now, nor touched. So a handle may be any 64 bits, such as another language keeps. */
#ifndef KEEL_CLIENT_API_LIVING_H
#define KEEL_CLIENT_API_LIVING_H

enum living_kind { LIVING_MUTEXES = 1, LIVING_POOL, LIVING_REQUEST, LIVING_COVERED, LIVING_GROUP };

/* A number for an object that is to come; NULL: out of memory. The last place that is free is for a group: of who
 * has no memory for one the others are told, and that is for whoever makes it to find out. */
void *living_take(enum living_kind kind);
void living_set(void *number, void *object);
/* The number is that of another object from now on, for which there is memory so. */
void living_become(void *number, enum living_kind kind, void *object);
/* NULL: none, of another kind, or given back. Takes no lock. */
void *living_find(const void *number, enum living_kind kind);
/* NULL is allowed. */
void living_give_back(void *number);
/* In a fork's child: it holds nothing. */
void living_forget(void);
#endif
