/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is replaced as a whole or not at all: it is written beside the
   old one, which it replaces only when it is complete. */
#ifndef HONE_EXAMPLES_OUTPUT_FILE_H
#define HONE_EXAMPLES_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct output_file {
  FILE *file;
  char *path, *beside; /* beside is NULL where path is written directly */
} output_file;

/* May a file of this name be written, as far as can be seen without writing it?
   If not, errno says why. */
bool output_file_possible(const char *path);

/* Opens o->file to be written. What is not a plain file, such as /dev/stdout or
   a pipe, is written directly. Returns false, with errno, where it cannot. */
bool output_file_open(output_file *o, const char *path);

/* Closes the file, and puts it in its place if it is whole: all was written
   according to the caller too. Returns false, with errno, if it is not in its
   place; the old file is then as it was. */
bool output_file_close(output_file *o, bool whole);

/* Are both paths names of one plain file? Either may be NULL. */
bool output_file_is(const char *path, const char *input);

#endif
