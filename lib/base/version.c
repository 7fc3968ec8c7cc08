/* version.c - which library this is */
#include "config.h"
#include "dtensor.h"

const char *dtensor_version(void)
{
    return PACKAGE_VERSION;
}

const char *dtensor_build(void)
{
    return DTN_BUILD;
}
