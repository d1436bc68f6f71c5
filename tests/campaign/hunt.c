/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hunt: hill climbing over systems of order 2 to 12 for one whose true
 * error, by exact arithmetic, is above the library's bound, or that of an entry
 * above its bar, or for a singular matrix that is accepted. The exit status is
 * 1 if there was one.
 *
 * A climb is made from its seed. In half of them the library's random draws
 * are deterministic, so that --replay SEED climbs again on the same way. The
 * draws of the others are unforeseeable; the system that was found is printed
 * in full, and --system FILE judges it again. The climbs of one process see the
 * same secret, but no bound tells it.
 */
#include "tests/campaign/hunt.h"
#include "base/lapack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Other processes have the other CPUs. */
static void one_thread(void) {
  hone_blas_set_threads(1);
  (void)setenv("HONE_NUM_THREADS", "1", 1);
}

static const char usage[] =
    "usage: hunt [options]\n"
    "  --seconds S      stop after so long (3600)\n"
    "  --climbs N       stop after so many\n"
    "  --seed S         of the hunt (1); 0: another for every hunt\n"
    "  --jobs J         processes (as many as cores)\n"
    "  --replay SEED    this climb alone; prints its best system\n"
    "  --range          all climbs may use the whole range of double\n"
    "  --deflate        all climbs are over nearly singular matrices, whose\n"
    "                   single factors are deflated\n"
    "  --batch          all systems are members of batches\n"
    "  --complex        over complex systems, of order 2 to 6\n"
    "  --system FILE    judges one system, as the hunt prints it\n";

enum { EVALUATIONS = 400, MOST_JOBS = 256 };

typedef struct settings {
  double seconds;
  int64_t climbs;
  uint64_t seed, replay_seed;
  int jobs;
  bool replay, range, deflate, batch, complex;
  const char *system;
} settings;

static double now_s(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what, const char *which) {
  (void)fprintf(stderr, "hunt: %s %s\n%s", what, which, usage);
  exit(2);
}

static void take_arguments(settings *s, int argc, char **argv) {
  *s = (settings){.seconds = 3600.0, .climbs = INT64_MAX, .seed = 1};
  for (int i = 1; i < argc; i += 2) {
    const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(arg, "--help") == 0) {
      (void)fputs(usage, stdout);
      exit(0);
    }
    bool *flag = strcmp(arg, "--range") == 0     ? &s->range
                 : strcmp(arg, "--deflate") == 0 ? &s->deflate
                 : strcmp(arg, "--batch") == 0   ? &s->batch
                 : strcmp(arg, "--complex") == 0 ? &s->complex
                                                 : NULL;
    if (flag != NULL) {
      *flag = true;
      i--; /* it has no value */
      continue;
    }
    if (value == NULL)
      die("what is", arg);
    if (strcmp(arg, "--seconds") == 0)
      s->seconds = strtod(value, NULL);
    else if (strcmp(arg, "--climbs") == 0)
      s->climbs = strtoll(value, NULL, 10);
    else if (strcmp(arg, "--seed") == 0)
      s->seed = strtoull(value, NULL, 0);
    else if (strcmp(arg, "--jobs") == 0)
      s->jobs = atoi(value);
    else if (strcmp(arg, "--system") == 0)
      s->system = value;
    else if (strcmp(arg, "--replay") == 0) {
      s->replay = true;
      s->replay_seed = strtoull(value, NULL, 0);
    } else
      die("what is", arg);
  }
  if (s->jobs < 1)
    s->jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (s->jobs > MOST_JOBS)
    die("out of range:", "--jobs");
  if (s->seed == 0)
    s->seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
}

/* ---- Workers ---- */

static void work(const settings *s, int job, double start_s, int to) {
  for (int64_t i = job; i < s->climbs; i += s->jobs) {
    gallery_rng rng = {s->seed * 0xd1342543de82ef95u + (uint64_t)i};
    hunt_climb climb = {.seed = gallery_next(&rng),
                        .parts = s->complex ? 2 : 1,
                        .any_size = s->range,
                        .deflates = s->deflate,
                        .in_batch = s->batch};
    if (now_s() - start_s > s->seconds)
      break;
    hunt_run(&climb, EVALUATIONS, hunt_by_library, stdout, NULL);
    if (write(to, &climb, sizeof climb) != (ssize_t)sizeof climb)
      _exit(3); /* the parent is gone */
  }
}

/* ---- The parent ---- */

typedef struct sums {
  int64_t climbs;
  hunt_climb all; /* its seed: of the largest ratio */
  uint64_t bar_seed, refused_seed;
} sums;

static void add(sums *t, const hunt_climb *c) {
  t->climbs++;
  t->all.evaluations += c->evaluations;
  t->all.singular += c->singular;
  t->all.columns += c->columns;
  t->all.accepted += c->accepted;
  t->all.wrong += c->wrong;
  t->all.refused += c->refused;
  t->all.refused_small += c->refused_small;
  t->all.wrong_in_range += c->wrong_in_range;
  if (c->ratio > t->all.ratio) {
    t->all.ratio = c->ratio;
    t->all.seed = c->seed;
  }
  if (c->bar_ratio > t->all.bar_ratio) {
    t->all.bar_ratio = c->bar_ratio;
    t->bar_seed = c->seed;
  }
  if (c->refused_condition < t->all.refused_condition) {
    t->all.refused_condition = c->refused_condition;
    t->refused_seed = c->seed;
  }
}

static void print(const sums *t, double seconds, FILE *f) {
  const hunt_climb *all = &t->all;
  (void)fprintf(f,
                "hunt: %.0f s, %" PRId64 " climbs, %" PRId64
                " systems (%" PRId64 " singular), %" PRId64 " of %" PRId64
                " columns accepted\n",
                seconds, t->climbs, all->evaluations, all->singular,
                all->accepted, all->columns);
  (void)fprintf(f,
                "hunt: largest error / bound %.6g (climb 0x%" PRIx64
                "), error / bar %.6g (climb 0x%" PRIx64 ")\n",
                all->ratio, all->seed, all->bar_ratio, t->bar_seed);
  (void)fprintf(f,
                "hunt: of condition up to 1e13 refused: %" PRId64
                " with a small row, %" PRId64
                " others, smallest condition %.1e (climb 0x%" PRIx64 ")\n",
                all->refused_small, all->refused, all->refused_condition,
                t->refused_seed);
  (void)fprintf(f,
                "hunt: wrong: %" PRId64 ", of them %" PRId64
                " with all numbers in range\n",
                all->wrong, all->wrong_in_range);
}

static void collect(int from, double start_s, sums *t) {
  hunt_climb climb;
  double last_s = start_s;
  while (read(from, &climb, sizeof climb) == (ssize_t)sizeof climb) {
    add(t, &climb);
    if (now_s() - last_s < 60.0)
      continue;
    last_s = now_s();
    print(t, last_s - start_s, stderr);
  }
}

static int run(const settings *s) {
  const double start_s = now_s();
  sums t = {.all = {.refused_condition = (double)INFINITY}};
  pid_t workers[MOST_JOBS];
  int ends[2];
  bool well = true;
  if (pipe(ends) != 0)
    die("no", "pipe");
  for (int j = 0; j < s->jobs; j++) {
    if ((workers[j] = fork()) < 0)
      die("no", "process");
    if (workers[j] > 0)
      continue;
    (void)close(ends[0]);
    one_thread();
    work(s, j, start_s, ends[1]);
    (void)fflush(stdout);
    _exit(0);
  }
  (void)close(ends[1]);
  collect(ends[0], start_s, &t);
  for (int j = 0; j < s->jobs; j++) {
    int how = 0;
    (void)waitpid(workers[j], &how, 0);
    well = well && WIFEXITED(how) && WEXITSTATUS(how) == 0;
  }
  print(&t, now_s() - start_s, stdout);
  if (!well)
    (void)fprintf(stderr, "hunt: a worker died\n");
  return t.all.wrong == 0 && well && t.climbs > 0 ? 0 : 1;
}

static int replay(const settings *s) {
  hunt_climb climb = {.seed = s->replay_seed,
                      .parts = s->complex ? 2 : 1,
                      .any_size = s->range,
                      .deflates = s->deflate,
                      .in_batch = s->batch};
  sums t = {.all = {.refused_condition = (double)INFINITY}};
  one_thread();
  hunt_run(&climb, EVALUATIONS, hunt_by_library, stdout, stdout);
  add(&t, &climb);
  print(&t, 0.0, stdout);
  return climb.wrong == 0 ? 0 : 1;
}

static int judge_file(const char *name) {
  hunt_system s;
  hunt_verdict v = {0};
  FILE *f = fopen(name, "r");
  if (f == NULL || !hunt_read(&s, f))
    die("cannot read", name);
  (void)fclose(f);
  one_thread();
  hunt_judge(&s, hunt_by_library, &v);
  hunt_print(&s, &v, stdout);
  return v.wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  settings s;
  take_arguments(&s, argc, argv);
  return s.system ? judge_file(s.system) : s.replay ? replay(&s) : run(&s);
}
