/* Lets a server listen on loopback that has no setting for it. Preloaded. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
    struct sockaddr_in copy;

    if (address->sa_family != AF_INET || length < sizeof copy)
        return real(descriptor, address, length);
    memcpy(&copy, address, sizeof copy);
    copy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(descriptor, (const struct sockaddr *)&copy, sizeof copy);
}
