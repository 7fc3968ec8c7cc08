/* print.c - the tree as text
 *
 * A line for each module, four columns further right than the one above it:
 *
 *   model: model
 *       up: linear  weight f32[16, 8](S(0))  bias f32[16](S(0))
 */
#include "base/error.h"
#include "module/module.h"
#include "module/style.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

static void print_line(const struct dtensor_module *module, FILE *stream,
                       int depth)
{
    char text[200];

    fprintf(stream, "%*s%s%s%s", 4 * depth, "", module->name,
            module->name[0] ? ": " : "", module->type);
    for (int i = 0; i < module->nparams; i++) {
        dtensor_spec_format(dtensor_spec_of(module->params[i].tensor), text,
                            sizeof text);
        fprintf(stream, "  %s %s", module->params[i].name, text);
    }
    if (module->styled)
        fprintf(stream, "  (%s)", module->styled->text);
    fputc('\n', stream);
}

static void print_tree(const struct dtensor_module *module, FILE *stream,
                       int depth)
{
    print_line(module, stream, depth);
    for (int i = 0; i < module->nchildren; i++)
        print_tree(module->children[i], stream, depth + 1);
}

int dtensor_module_print(const struct dtensor_module *module, FILE *stream,
                         struct dtensor_error *err)
{
    print_tree(module, stream, 0);
    if (fflush(stream) != 0 || ferror(stream))
        return dtn_fail_sys(err, errno ? errno : EIO, "module: cannot write: "
                            "%m");
    return 0;
}
