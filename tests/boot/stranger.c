/* stranger.c - who knows all of a job but its key */
#include "base/seal.h"
#include "boot/frame.h"
#include "cluster/cluster.h"
#include "tests/boot/stranger.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Its random bytes are zeros. */
size_t stranger_knock(unsigned char frame[256])
{
    unsigned char *body = frame + DTN_FRAME_HEAD_BYTES;
    const size_t head = DTN_FRAME_KNOCK_BYTES + sizeof "n1";
    const int job_size = snprintf((char *)body + head, 64, "test-%d",
                                  (int)getpid());
    const size_t size = head + (size_t)job_size;

    memset(frame, 0, DTN_FRAME_HEAD_BYTES + head);
    memcpy(frame, "DTNB", 4);
    dtn_frame_put32(frame + 4, DTN_FRAME_VERSION | DTN_FRAME_KNOCK << 16);
    dtn_frame_put32(frame + 16, (uint32_t)size);
    dtn_frame_put32(body, dtn_seal_present() ? DTN_AUTH_KEY : DTN_AUTH_NONE);
    dtn_frame_put32(body + 4, 2);
    dtn_frame_put32(body + 24, DTN_FRAME_VERSION);
    memcpy(body + DTN_FRAME_KNOCK_BYTES, "n1", sizeof "n1");
    return DTN_FRAME_HEAD_BYTES + size;
}
