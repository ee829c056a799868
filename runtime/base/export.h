/* What programs may call of the library. */
#ifndef KEEL_BASE_EXPORT_H
#define KEEL_BASE_EXPORT_H

#define KEEL_EXPORT __attribute__((visibility("default")))
#endif
