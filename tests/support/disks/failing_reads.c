/* Reads that fail as a dying disk's do: preloaded into a process and all that it starts.

   FAILING_READS is lines of "PATH FIRST LAST": every read of the file at that path that has one of
   those bytes fails with EIO. Instead of the two numbers "open" lets opening it fail with EIO,
   "denied" with EACCES; so do directories. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int next_rule(const char **rules, char *path, long long *first, long long *last)
{
    char word[32];
    while (*rules && **rules) {
        const char *end = strchr(*rules, '\n');
        int fields = sscanf(*rules, "%4095s %31s %lld", path, word, last);
        *rules = end ? end + 1 : NULL;
        if (fields < 2)
            continue;
        *first = strcmp(word, "open") == 0 ? -EIO : strcmp(word, "denied") == 0 ? -EACCES : atoll(word);
        return 1;
    }
    return 0;
}

static int cannot_open(const char *given)
{
    const char *rules = getenv("FAILING_READS");
    char path[PATH_MAX], real[PATH_MAX];
    long long first, last = 0;
    if (!rules || !given || given[0] != '/' || !strncmp(given, "/proc/", 6) || !realpath(given, real))
        return 0;
    while (next_rule(&rules, path, &first, &last))
        if (first < 0 && strcmp(path, real) == 0)
            return (int)-first;
    return 0;
}

static int cannot_read(int descriptor, long long position, long long size)
{
    const char *rules = getenv("FAILING_READS");
    char link[64], path[PATH_MAX], real[PATH_MAX];
    long long first, last = 0;
    ssize_t length;
    if (!rules)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, real, sizeof real - 1);
    if (length <= 0)
        return 0;
    real[length] = 0;
    while (next_rule(&rules, path, &first, &last))
        if (first >= 0 && strcmp(path, real) == 0 && position <= last && first < position + size)
            return 1;
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(condition, value) do { if (condition) { errno = EIO; return (value); } } while (0)

static long long total(const struct iovec *parts, int count)
{
    long long size = 0;
    for (int i = 0; i < count; i++)
        size += (long long)parts[i].iov_len;
    return size;
}

ssize_t pread(int descriptor, void *buffer, size_t size, off_t position)
{
    FAIL_IF(cannot_read(descriptor, position, (long long)size), -1);
    return REAL(pread)(descriptor, buffer, size, position);
}

ssize_t pread64(int descriptor, void *buffer, size_t size, off64_t position)
{
    FAIL_IF(cannot_read(descriptor, position, (long long)size), -1);
    return REAL(pread64)(descriptor, buffer, size, position);
}

ssize_t preadv(int descriptor, const struct iovec *parts, int count, off_t position)
{
    FAIL_IF(cannot_read(descriptor, position, total(parts, count)), -1);
    return REAL(preadv)(descriptor, parts, count, position);
}

ssize_t preadv64(int descriptor, const struct iovec *parts, int count, off64_t position)
{
    FAIL_IF(cannot_read(descriptor, position, total(parts, count)), -1);
    return REAL(preadv64)(descriptor, parts, count, position);
}

ssize_t preadv2(int descriptor, const struct iovec *parts, int count, off_t position, int flags)
{
    FAIL_IF(cannot_read(descriptor, position, total(parts, count)), -1);
    return REAL(preadv2)(descriptor, parts, count, position, flags);
}

ssize_t preadv64v2(int descriptor, const struct iovec *parts, int count, off64_t position, int flags)
{
    FAIL_IF(cannot_read(descriptor, position, total(parts, count)), -1);
    return REAL(preadv64v2)(descriptor, parts, count, position, flags);
}

ssize_t read(int descriptor, void *buffer, size_t size)
{
    if (getenv("FAILING_READS")) {
        off_t position = lseek(descriptor, 0, SEEK_CUR);
        FAIL_IF(position >= 0 && cannot_read(descriptor, position, (long long)size), -1);
    }
    return REAL(read)(descriptor, buffer, size);
}

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...)                                  \
    {                                                                           \
        va_list arguments;                                                      \
        va_start(arguments, flags);                                             \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0; \
        va_end(arguments);                                                      \
        int failure = cannot_open(path);                                        \
        if (failure) { errno = failure; return -1; }                            \
        return REAL(name)(path, flags, mode);                                   \
    }
OPEN(open)
OPEN(open64)

DIR *opendir(const char *path)
{
    int failure = cannot_open(path);
    if (failure) { errno = failure; return NULL; }
    return REAL(opendir)(path);
}
