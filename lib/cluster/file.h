/* file.h - limits of a cluster file */
#ifndef DTN_CLUSTER_FILE_H
#define DTN_CLUSTER_FILE_H

#define DTN_FILE_MAX (1 << 20)     /* bytes of a cluster file                 */
#define DTN_LINE_MAX 197           /* bytes of a line that inih does not cut  */
#define DTN_ITEM_SIZE 200         /* a buffer that holds any value            */
#define DTN_WHY_SIZE 600           /* a buffer that holds an error text       */
#define DTN_MAX_WORLD (1 << 20)    /* ranks                                   */
#define DTN_MAX_MESHES 256

#endif
