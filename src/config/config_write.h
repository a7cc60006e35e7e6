/* A value as text. */
#ifndef RRL_CONFIG_WRITE_H
#define RRL_CONFIG_WRITE_H

#include "base/memory.h"
#include "config/config_table.h"

typedef enum {
    RRL_WRITE_YAML,   /* plain where every YAML reader agrees on the type */
    RRL_WRITE_DIGEST, /* one form for one value: shortest numbers, quoted texts */
} rrl_write_style;

/** Append a key's value. base: PATH and NAME values below this folder are written relative to it; NULL = as
 * they are. */
rrl_status rrl_value_write(rrl_buffer *b, const rrl_key *k, const void *section, rrl_write_style style,
                           const char *base);

#endif
