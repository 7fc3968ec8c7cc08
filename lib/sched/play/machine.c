/* machine.c - the machine that the predictions of a model are about
 *
 * A model has a hop, a message and a byte of each wire: they are L, o and G of
 * LogGP.  A hop contains the time to notice, and g is no more than o.
 */
#include "sched/model.h"
#include "sched/play.h"

static struct dtn_play_wire wire_of(const double ns[])
{
    return (struct dtn_play_wire){ .latency_ns = ns[0], .post_ns = ns[1],
                                   .byte_ns = ns[2] };
}

void dtn_play_machine_of(const struct dtn_model *model,
                         struct dtn_play_machine *machine)
{
    *machine = (struct dtn_play_machine){
        .ranks = model->hosts * model->locals, .host = model->host,
        .per_host = model->locals,
        .rails = (int)(model->locals / model->ranks_per_device + 0.5),
        .near = wire_of(model->ns + DTENSOR_COST_INTRA_HOPS),
        .far = wire_of(model->ns + DTENSOR_COST_INTER_HOPS),
        .folded_ns = model->ns[DTENSOR_COST_FOLDED],
        .copied_ns = model->ns[DTENSOR_COST_COPIED] };
    if (machine->rails < 1)
        machine->rails = 1;
}
