/* version.c - which library this is */
#include "base/base.h"

#include "config.h"

const char *dtensor_version(void)
{
    return PACKAGE_VERSION;
}

const char *dtensor_build(void)
{
    return DTN_BUILD;
}
