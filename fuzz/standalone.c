/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces libFuzzer under compilers that have none: runs
 * LLVMFuzzerTestOneInput with the files and folders given as arguments, in the
 * order of their names. It fails if it found no file, so that an empty corpus
 * does not pass. When a check aborts, it prints the name of the file.
 */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_PATH = 4096 };

static char current[LONGEST_PATH]; /* the file, for the signal handler */
static long replayed;

static void name_the_file(int signal_number) {
  static const char text[] = "\nwhile replaying ";
  ssize_t ignored = write(2, text, sizeof text - 1);
  ignored = write(2, current, strlen(current));
  ignored = write(2, "\n", 1);
  (void)ignored;
  (void)signal(signal_number, SIG_DFL);
  (void)raise(signal_number);
}

/* Reads the file into exactly size bytes, so that a sanitizer detects reads
   beyond them. */
static int replay_file(const char *path, size_t size) {
  FILE *f = fopen(path, "rb");
  uint8_t *data = malloc(size > 0 ? size : 1);
  int ok = f && data && fread(data, 1, size, f) == size;
  if (ok) {
    (void)snprintf(current, sizeof current, "%s", path);
    (void)LLVMFuzzerTestOneInput(data, size);
    replayed++;
  } else {
    perror(path);
  }
  free(data);
  if (f)
    (void)fclose(f);
  return ok;
}

static int visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int replay(const char *path);

static int replay_folder(const char *path) {
  struct dirent **entries = NULL;
  int count = scandir(path, &entries, visible, alphasort);
  int ok = count >= 0;
  if (!ok)
    perror(path);
  for (int i = 0; i < count; i++) {
    char name[LONGEST_PATH];
    int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
    ok &= length > 0 && length < LONGEST_PATH && replay(name);
    free(entries[i]);
  }
  free(entries);
  return ok;
}

static int replay(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) {
    perror(path);
    return 0;
  }
  return S_ISDIR(info.st_mode) ? replay_folder(path)
                               : replay_file(path, (size_t)info.st_size);
}

int main(int argc, char **argv) {
  int ok = 1;
  (void)signal(SIGABRT, name_the_file);
  (void)signal(SIGFPE, name_the_file);
  for (int i = 1; i < argc; i++)
    ok &= replay(argv[i]);
  printf("%s: %ld inputs replayed\n", argv[0], replayed);
  if (replayed == 0)
    (void)fprintf(stderr, "usage: %s FILE-OR-FOLDER...\n", argv[0]);
  return ok && replayed > 0 ? 0 : 1;
}
