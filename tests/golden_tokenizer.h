/* The golden check of tokenizers and chat templates, for test_tokenizer.c and test_golden.c. */
#ifndef RRL_TESTS_GOLDEN_TOKENIZER_H
#define RRL_TESTS_GOLDEN_TOKENIZER_H

/** Check folder/cases.json (text -> ids, decoded with and without special tokens) and folder/chat.json
 * (messages -> text and ids) against the tokenizer in the folder. Prints a line per failure to stderr and
 * adds what was checked to *checks. Returns the number of failures; a folder that cannot be read is one. */
int golden_tokenizer(int *checks, const char *folder);

#endif
