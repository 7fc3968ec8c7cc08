// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/* rxe_dmabuf.c - kernel module of the guest: soft RDMA devices take dma-bufs
 *
 * A network card registers the memory of a GPU through a dma-buf.  The driver
 * rdma_rxe has no such entry, so nothing could be registered in that way on a
 * machine without a card.  This module gives each rxe device the entry.  It
 * takes the pages of the dma-buf, maps them for a moment into the process that
 * registers, and lets rxe register that address range, which pins the pages.
 * The dma-buf is held until the region goes.
 */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/iosys-map.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

/* A region that is registered, and the dma-buf that it holds. */
struct region {
    struct list_head list;
    struct ib_mr *mr;
    struct dma_buf *dmabuf;
};

/* Pages that one mmap() shows. */
struct window {
    struct page **page;           /* [count] */
    unsigned long count;
};

static LIST_HEAD(regions);
static DEFINE_MUTEX(regions_lock);
static int (*rxe_dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);

static int window_mmap(struct file *file, struct vm_area_struct *vma)
{
    struct window *window = file->private_data;

    return vm_map_pages_zero(vma, window->page, window->count);
}

static const struct file_operations window_ops = {
    .owner = THIS_MODULE,
    .mmap = window_mmap,
};

/* The pages of [offset, offset + length).  window->page is the caller's. */
static int window_open(struct window *window, struct dma_buf *dmabuf,
                       u64 offset, u64 length)
{
    const unsigned long first = offset >> PAGE_SHIFT;
    struct iosys_map map;
    u64 end;
    int rc;

    if (length == 0 || check_add_overflow(offset, length, &end)
        || end > dmabuf->size)
        return -EINVAL;
    window->count = DIV_ROUND_UP_ULL(end, PAGE_SIZE) - first;
    window->page = kvcalloc(window->count, sizeof(*window->page), GFP_KERNEL);
    if (!window->page)
        return -ENOMEM;
    rc = dma_buf_vmap_unlocked(dmabuf, &map);
    if (rc)
        return rc;
    for (unsigned long i = 0; i < window->count && !rc; i++) {
        window->page[i] = vmalloc_to_page(map.vaddr
                                          + ((first + i) << PAGE_SHIFT));
        rc = window->page[i] ? 0 : -EFAULT;
    }
    dma_buf_vunmap_unlocked(dmabuf, &map);
    return rc;
}

/* Map the window into this process; its address, or an error. */
static unsigned long window_map(struct window *window)
{
    struct file *file = anon_inode_getfile("rxe_dmabuf", &window_ops, window,
                                           O_RDWR);
    unsigned long at;

    if (IS_ERR(file))
        return (unsigned long)PTR_ERR(file);
    at = vm_mmap(file, 0, window->count << PAGE_SHIFT, PROT_READ | PROT_WRITE,
                 MAP_SHARED, 0);
    fput(file);
    return at;
}

static struct ib_mr *window_register(struct window *window, struct ib_pd *pd,
                                     u64 offset, u64 length, u64 iova,
                                     int access)
{
    const unsigned long at = window_map(window);
    struct ib_mr *mr;

    if (IS_ERR_VALUE(at))
        return ERR_PTR((long)at);
    mr = pd->device->ops.reg_user_mr(pd, at + offset_in_page(offset), length,
                                     iova, access, NULL);
    vm_munmap(at, window->count << PAGE_SHIFT);
    if (!IS_ERR(mr)) {
        mr->iova = iova;          /* ib_uverbs sets neither for dma-bufs    */
        mr->length = length;
    }
    return mr;
}

static void regions_add(struct region *region)
{
    mutex_lock(&regions_lock);
    list_add(&region->list, &regions);
    mutex_unlock(&regions_lock);
}

static struct region *regions_take(const struct ib_mr *mr)
{
    struct region *region, *found = NULL;

    mutex_lock(&regions_lock);
    list_for_each_entry(region, &regions, list)
        if (region->mr == mr)
            found = region;
    if (found)
        list_del(&found->list);
    mutex_unlock(&regions_lock);
    return found;
}

static struct ib_mr *reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset,
                                        u64 length, u64 iova, int fd,
                                        int access,
                                        struct uverbs_attr_bundle *attrs)
{
    struct region *region = kzalloc(sizeof(*region), GFP_KERNEL);
    struct window window = { NULL, 0 };
    struct dma_buf *dmabuf;
    int rc;

    if (!region)
        return ERR_PTR(-ENOMEM);
    dmabuf = dma_buf_get(fd);
    if (IS_ERR(dmabuf)) {
        kfree(region);
        return ERR_CAST(dmabuf);
    }
    region->dmabuf = dmabuf;
    rc = window_open(&window, dmabuf, offset, length);
    region->mr = rc ? ERR_PTR(rc)
                    : window_register(&window, pd, offset, length, iova,
                                      access);
    kvfree(window.page);
    if (IS_ERR(region->mr)) {
        struct ib_mr *failed = region->mr;

        dma_buf_put(dmabuf);
        kfree(region);
        return failed;
    }
    regions_add(region);
    return region->mr;
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
    struct region *region = regions_take(mr);
    int rc = rxe_dereg_mr(mr, udata);

    if (region && rc) {
        regions_add(region);
    } else if (region) {
        dma_buf_put(region->dmabuf);
        kfree(region);
    }
    return rc;
}

static int client_add(struct ib_device *device)
{
    if (device->ops.driver_id != RDMA_DRIVER_RXE)
        return -EOPNOTSUPP;
    rxe_dereg_mr = device->ops.dereg_mr;
    device->ops.dereg_mr = dereg_mr;
    device->ops.reg_user_mr_dmabuf = reg_user_mr_dmabuf;
    return 0;
}

static void client_remove(struct ib_device *device, void *data)
{
    device->ops.reg_user_mr_dmabuf = NULL;
    device->ops.dereg_mr = rxe_dereg_mr;
}

static struct ib_client client = {
    .name = "rxe_dmabuf",
    .add = client_add,
    .remove = client_remove,
};

static int __init rxe_dmabuf_init(void)
{
    return ib_register_client(&client);
}

static void __exit rxe_dmabuf_exit(void)
{
    ib_unregister_client(&client);
}

module_init(rxe_dmabuf_init);
module_exit(rxe_dmabuf_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("soft RDMA devices register dma-bufs, for tests");
MODULE_IMPORT_NS(DMA_BUF);
