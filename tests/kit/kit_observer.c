/* SPDX-License-Identifier: BSD-3-Clause */
#include "kit/kit_program.h"
void kit_observer_cases(void)
{
}
