/* Which sanitizer this is compiled with: clang tells by __has_feature, gcc by a macro. */
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED_ADDRESS 1
#endif
#if __has_feature(thread_sanitizer)
#define SANITIZED_THREAD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED_ADDRESS 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SANITIZED_THREAD 1
#endif

#if defined(SANITIZED_ADDRESS) || defined(SANITIZED_THREAD)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
