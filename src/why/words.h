/* SPDX-License-Identifier: Apache-2.0 */
/* Advice that rows of causes.def share with the report's `fit` and `cure`. */
#ifndef GPC_WHY_WORDS_H
#define GPC_WHY_WORDS_H

#define GPC_SWEEP_BATCH "--sweep BATCH=1..N -- COMMAND {BATCH}"
#define GPC_OPTIMIZERS  "SGD, Adafactor, an 8-bit one"

#endif
