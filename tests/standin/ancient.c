/* ancient.c - a driver of CUDA 10.1, too old to be loaded */
#include <stddef.h>

int cuDriverGetVersion(int *version);

int cuDriverGetVersion(int *version)
{
    *version = 10010;
    return 0;
}
