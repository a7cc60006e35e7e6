/* What the report knows of the study as a whole: its configuration, its hypotheses and their digest, where the records
 * came from. Used by src/report only. */
#ifndef RRL_REPORT_STUDY_INFO_H
#define RRL_REPORT_STUDY_INFO_H

#include "report/report_data.h"
#include "study/qualify.h"

typedef struct {
    char *name, *value;
} rrl_report_fact;

typedef struct {
    rrl_config *config;        /* of study.json; NULL = the folder is no study's */
    char hypotheses[65];       /* SHA-256 recorded in study.json before the first run; "" without one */
    bool hypotheses_unchanged; /* the hypotheses read now have that digest */
    char *label;               /* experiment.label; "" = none */
    uint64_t seed;             /* of the study, else the smallest of the records: keys every draw */
    rrl_qualification qualification; /* of dir/qualification; no questions = not measured */
    double demanded;                 /* pass@1 before training; 0 = nothing */
    rrl_report_fact *facts;    /* provenance: different values of all records */
    size_t n_facts, fact_capacity;
} rrl_report_study;

/** Read dir/study.json and dir/qualification where they are, and gather facts of the records. Free with rrl_report_study_free. */
rrl_status rrl_report_study_read(rrl_report_study *out, const char *dir, const rrl_report_data *d);
void rrl_report_study_free(rrl_report_study *s);

#endif
