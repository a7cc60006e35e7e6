/* Sections of a report: records that may stand in one table. Used by src/report only.
 *
 * Two records share a section when they have the same class of execution (fixture audits apart from models; training
 * and evaluation are one class, because a study compares trained policies with the base), model digest, answer parser,
 * evaluation questions, training questions, and resolved configuration in every key that changes results but for those
 * in which the conditions of one study differ on purpose: seed, reward.*, experiment.* and the corruption of the members.
 * Where one of them was not trained, its training questions and training.* do not count.
 * Two records of one condition (arm, level, method, seed) never share a section. */
#ifndef RRL_REPORT_SECTIONS_H
#define RRL_REPORT_SECTIONS_H

#include "report/report_data.h"

typedef struct {
    const rrl_report_condition **v; /* borrowed, in rrl_report_order */
    size_t n, capacity;
    char *difference; /* what tells it from the first section; "" for the first */
} rrl_report_section;

typedef struct {
    rrl_report_section *v;
    size_t n, capacity;
} rrl_report_sections;

/** Sections of the data, which must outlive them. Free with rrl_report_sections_free. */
rrl_status rrl_report_sections_make(rrl_report_sections *out, const rrl_report_data *d);
void rrl_report_sections_free(rrl_report_sections *s);

#endif
