/* torch_cost.h - what PyTorch 2.15 thinks that a redistribute costs */
#ifndef TESTS_TORCH_COST_H
#define TESTS_TORCH_COST_H

#include "op/choose.h"
#include "dtensor.h"

/* Microseconds, with all ranks on one host; HUGE_VAL: not for an operator. */
dtn_cost_f torch_cost;
dtn_least_f torch_cost_least;

#endif
