/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* realpath */
#include "examples/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_file_is(const char *path, const char *input) {
  struct stat a, b;
  return path != NULL && input != NULL && stat(path, &a) == 0 &&
         stat(input, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

bool output_file_possible(const char *path) {
  struct stat old;
  const bool exists = stat(path, &old) == 0;
  if (exists && S_ISDIR(old.st_mode))
    errno = EISDIR;
  if (exists && !S_ISREG(old.st_mode))
    return !S_ISDIR(old.st_mode);
  char *folder = exists ? realpath(path, NULL) : strdup(path);
  if (folder == NULL)
    return false;
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    strcpy(folder, *path != 0 ? "." : "");
  else
    slash[slash == folder] = 0; /* the folder / keeps its slash */
  const bool possible =
      access(folder, W_OK | X_OK) == 0 && (!exists || access(path, W_OK) == 0);
  const int why = errno;
  free(folder);
  errno = why;
  return possible;
}

/* Opens a new file beside o->path, with the permissions of the old one. */
static int open_beside(output_file *o, bool exists, mode_t mode) {
  static const char ending[] = ".XXXXXX";
  const size_t length = strlen(o->path);
  o->beside = malloc(length + sizeof ending);
  if (o->beside == NULL)
    return -1;
  memcpy(o->beside, o->path, length);
  memcpy(o->beside + length, ending, sizeof ending);
  const int file = mkstemp(o->beside);
  if (!exists) {
    const mode_t mask = umask(0);
    umask(mask);
    mode = 0666 & ~mask;
  }
  if (file >= 0)
    (void)fchmod(file, mode & 0777);
  return file;
}

static bool give_up(output_file *o) {
  const int why = errno;
  if (o->file != NULL)
    fclose(o->file);
  if (o->beside != NULL)
    unlink(o->beside);
  free(o->path);
  free(o->beside);
  *o = (output_file){.file = NULL};
  errno = why;
  return false;
}

bool output_file_open(output_file *o, const char *path) {
  struct stat old;
  const bool exists = stat(path, &old) == 0;
  *o = (output_file){.file = NULL};
  if (exists && !S_ISREG(old.st_mode)) {
    o->file = fopen(path, "w");
    return o->file != NULL;
  }
  if (exists && access(path, W_OK) != 0)
    return false;
  /* A symbolic link stays, and what it leads to is replaced. */
  o->path = exists ? realpath(path, NULL) : strdup(path);
  if (o->path == NULL)
    return false;
  const int file = open_beside(o, exists, exists ? old.st_mode : 0);
  if (file < 0) {
    free(o->beside); /* no such file was made */
    o->beside = NULL;
    return give_up(o);
  }
  o->file = fdopen(file, "w");
  if (o->file == NULL)
    close(file);
  return o->file != NULL || give_up(o);
}

bool output_file_close(output_file *o, bool whole) {
  whole = whole && fflush(o->file) == 0 && !ferror(o->file);
  if (!whole)
    return give_up(o);
  FILE *file = o->file;
  o->file = NULL;
  if (fclose(file) != 0 ||
      (o->beside != NULL && rename(o->beside, o->path) != 0))
    return give_up(o);
  free(o->path);
  free(o->beside);
  *o = (output_file){.file = NULL};
  return true;
}
