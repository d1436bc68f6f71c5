/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The campaign solves many random systems by the library, dgesv and dsgesv, and
 * compares every x with an independent reference in more than double precision.
 * `campaign --help` lists the options. The table goes to stdout.
 *
 * Five columns of the table count defects; the exit status is 1 unless all are
 * zero:
 *   x was accepted, but its backward error omega is above 4 eps;
 *   the true forward error is above the bound, of an accepted x or another;
 *   x was accepted, but the matrix is singular by construction;
 *   the contract was broken otherwise: x was written after an error or is not
 *   finite, the status does not agree with those of the columns, the reported
 *   backward error is too small, or the error is no fault of the system (such
 *   as a missing device).
 *
 * System i is made from the seed of the campaign and i. A defect is printed
 * with the system's own seed; --replay solves that system again (with the same
 * --family, --max-n, --device, --start, --extra, --batch, --differ and
 * --complex).
 * Workers are processes, each with one system at a time.
 */
#include "tests/campaign/campaign.h"
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
    "usage: campaign [options]\n"
    "  --systems N      how many (100000)\n"
    "  --seconds S      stop after so long\n"
    "  --seed S         of the campaign (1)\n"
    "  --family NAME    this one alone; --families lists them\n"
    "  --max-n N        orders up to N (600)\n"
    "  --device NAME    cpu, cuda or auto (cpu)\n"
    "  --start NAME     auto, single, or mixed: half of each (mixed)\n"
    "  --extra          in extra-precise mode\n"
    "  --batch          every system as a member of a batch\n"
    "  --differ         many right-hand sides that differ as they can\n"
    "  --complex        complex systems, beside zgesv and zcgesv\n"
    "  --jobs J         processes (cpu: as many as cores; cuda: 1)\n"
    "  --keep-going     not to stop at the first defect\n"
    "  --verbose        tell of systems accepted without a correct digit, "
    "too,\n"
    "                   and of well-conditioned ones that were not accepted\n"
    "  --replay SEED    this system alone, with all that was measured\n"
    "  --json FILE      the table as JSON\n";

typedef struct settings {
  campaign_plan plan;
  const char *json;
  bool replay;
  uint64_t replay_seed;
} settings;

static double now_s(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t seed_of(const campaign_plan *plan, int64_t i) {
  gallery_rng rng = {plan->seed * 0xd1342543de82ef95u + (uint64_t)i};
  return gallery_next(&rng);
}

/* ---- Options ---- */

static void die(const char *what, const char *which) {
  (void)fprintf(stderr, "campaign: %s %s\n%s", what, which, usage);
  exit(2);
}

/* The number that goes with a name: "cpu" in "auto cpu cuda" is 1. */
static int choose(const char *value, const char *const *names, int count) {
  for (int k = 0; k < count; k++)
    if (strcmp(value, names[k]) == 0)
      return k;
  die("what is", value);
  return 0;
}

static const char *const devices[] = {"auto", "cpu", "cuda"};
static const char *const starts[] = {"mixed", "auto", "single"};

static bool take_flag(settings *s, const char *arg) {
  if (strcmp(arg, "--keep-going") == 0) {
    s->plan.keep_going = true;
  } else if (strcmp(arg, "--verbose") == 0) {
    s->plan.verbose = true;
  } else if (strcmp(arg, "--extra") == 0) {
    s->plan.extra = true;
  } else if (strcmp(arg, "--batch") == 0) {
    s->plan.batch = true;
  } else if (strcmp(arg, "--differ") == 0) {
    s->plan.differ = true;
  } else if (strcmp(arg, "--complex") == 0) {
    s->plan.parts = 2;
  } else if (strcmp(arg, "--families") == 0) {
    for (int k = 0; k < gallery_complex_count; k++)
      printf("%-24s %s\n", gallery_families[k].name, gallery_families[k].what);
    exit(0);
  } else if (strcmp(arg, "--help") == 0) {
    (void)fputs(usage, stdout);
    exit(0);
  } else {
    return false;
  }
  return true;
}

static void take_option(settings *s, const char *arg, const char *value) {
  campaign_plan *p = &s->plan;
  if (strcmp(arg, "--systems") == 0)
    p->systems = strtoll(value, NULL, 10);
  else if (strcmp(arg, "--seconds") == 0)
    p->seconds = strtod(value, NULL);
  else if (strcmp(arg, "--seed") == 0)
    p->seed = strtoull(value, NULL, 0);
  else if (strcmp(arg, "--max-n") == 0)
    p->max_n = strtoll(value, NULL, 10);
  else if (strcmp(arg, "--jobs") == 0)
    p->jobs = atoi(value);
  else if (strcmp(arg, "--json") == 0)
    s->json = value;
  else if (strcmp(arg, "--device") == 0)
    p->device = choose(value, devices, 3);
  else if (strcmp(arg, "--start") == 0)
    p->start = choose(value, starts, 3) + CAMPAIGN_START_MIXED;
  else if (strcmp(arg, "--family") == 0) {
    if ((p->family = gallery_find(value)) == NULL)
      die("no family", value);
  } else if (strcmp(arg, "--replay") == 0) {
    s->replay = true;
    s->replay_seed = strtoull(value, NULL, 0);
  } else {
    die("what is", arg);
  }
}

static void take_arguments(settings *s, int argc, char **argv) {
  campaign_plan *p = &s->plan;
  *s = (settings){.plan = {.systems = 100000,
                           .max_n = CAMPAIGN_MOST_N,
                           .seed = 1,
                           .device = HONE_DEVICE_CPU,
                           .start = CAMPAIGN_START_MIXED,
                           .complete = true}};
  for (int i = 1; i < argc; i++) {
    if (take_flag(s, argv[i]))
      continue;
    if (i + 1 == argc)
      die("what is", argv[i]);
    take_option(s, argv[i], argv[i + 1]);
    i++;
  }
  if (p->jobs < 1)
    p->jobs =
        p->device == HONE_DEVICE_CPU ? (int)sysconf(_SC_NPROCESSORS_ONLN) : 1;
  if (p->max_n < 1 || p->systems < 1 || p->jobs > 256)
    die("out of range:", "--max-n, --systems or --jobs");
  if (p->parts != 2 && p->family && (p->family->properties & GALLERY_COMPLEX))
    die("--complex is missing for", p->family->name);
}

/* ---- Workers ---- */

/* The bytes of a record with its columns. */
static size_t record_bytes(const campaign_record *r) {
  return offsetof(campaign_record, column) +
         (size_t)r->nrhs * sizeof *r->column;
}

/* Sends a record in one piece: pipes do not split writes of up to PIPE_BUF. */
static void send(int to, const campaign_record *r) {
  const size_t bytes = record_bytes(r);
  if (write(to, r, bytes) != (ssize_t)bytes)
    _exit(3); /* the parent is gone */
}

static bool receive(int from, campaign_record *r) {
  char *to = (char *)r;
  size_t have = 0, want = offsetof(campaign_record, column);
  while (have < want) {
    ssize_t got = read(from, to + have, want - have);
    if (got <= 0)
      return false;
    have += (size_t)got;
    if (have == offsetof(campaign_record, column))
      want = record_bytes(r);
  }
  return true;
}

static void work(const campaign_plan *plan, int job, double start_s, int to) {
  reference r = {0};
  for (int64_t i = job; i < plan->systems; i += plan->jobs) {
    campaign_system s;
    campaign_record record = {.begins = 1, .family = job};
    if (plan->seconds > 0.0 && now_s() - start_s > plan->seconds)
      break;
    record.seed = seed_of(plan, i);
    send(to, &record);
    campaign_draw(&s, plan, record.seed);
    campaign_check(&s, &r, &record);
    send(to, &record);
    campaign_free(&s);
  }
  reference_free(&r);
}

/* ---- The parent ---- */

/* Prints the command that solves a system again. */
static void print_replay(const campaign_plan *plan, uint64_t seed, FILE *f) {
  (void)fprintf(f, "campaign --replay 0x%" PRIx64, seed);
  if (plan->family)
    (void)fprintf(f, " --family %s", plan->family->name);
  if (plan->max_n != CAMPAIGN_MOST_N)
    (void)fprintf(f, " --max-n %d", (int)plan->max_n);
  if (plan->device != HONE_DEVICE_CPU)
    (void)fprintf(f, " --device %s", devices[plan->device]);
  if (plan->extra)
    (void)fprintf(f, " --extra");
  if (plan->batch)
    (void)fprintf(f, " --batch");
  if (plan->differ)
    (void)fprintf(f, " --differ");
  if (plan->parts == 2)
    (void)fprintf(f, " --complex");
  if (plan->start != CAMPAIGN_START_MIXED)
    (void)fprintf(f, " --start %s", starts[plan->start - CAMPAIGN_START_MIXED]);
}

static void report_system(const campaign_plan *plan, const campaign_record *r) {
  (void)fprintf(stderr, "\n%s n %d nrhs %d: ", gallery_families[r->family].name,
                r->n, r->nrhs);
  print_replay(plan, r->seed, stderr);
  (void)fprintf(stderr, "\n");
  campaign_accuse(r, stderr);
}

static void show_progress(const campaign_plan *plan, double start_s,
                          int64_t done, int64_t defects) {
  static double last_s;
  const double now = now_s();
  if (now - last_s < 5.0)
    return;
  last_s = now;
  (void)fprintf(stderr,
                "campaign: %" PRId64 " of %" PRId64 " systems, %.0f s, %" PRId64
                " defects\n",
                done, plan->systems, now - start_s, defects);
}

/* Collects records until all workers are done, or until the first defect.
   current: the seed at which each worker is. */
static int64_t collect(const campaign_plan *plan, double start_s, int from,
                       campaign_tally *t, uint64_t *current) {
  campaign_record r;
  int64_t defects = 0, done = 0;
  while (receive(from, &r)) {
    if (r.begins) {
      current[r.family] = r.seed;
      continue;
    }
    done++;
    for (int j = 0; j < plan->jobs; j++)
      current[j] = current[j] == r.seed ? 0 : current[j];
    const int found = campaign_count(t, &r);
    defects += found;
    if (found > 0 || (plan->verbose && campaign_remarkable(&r)))
      report_system(plan, &r);
    if (found > 0 && !plan->keep_going)
      break;
    show_progress(plan, start_s, done, defects);
  }
  return defects;
}

/* Returns true if all workers ended regularly, or only because the parent had
   stopped reading. */
static bool wait_for(const campaign_plan *plan, const pid_t *workers,
                     const uint64_t *current) {
  bool well = true;
  for (int j = 0; j < plan->jobs; j++) {
    int how = 0;
    (void)waitpid(workers[j], &how, 0);
    if (WIFEXITED(how) && (WEXITSTATUS(how) == 0 || WEXITSTATUS(how) == 3))
      continue;
    if (WIFSIGNALED(how) && WTERMSIG(how) == 13) /* SIGPIPE */
      continue;
    well = false;
    (void)fprintf(stderr, "campaign: a worker died in ");
    print_replay(plan, current[j], stderr);
    (void)fprintf(stderr, "\n");
  }
  return well;
}

static int run(const settings *s, campaign_tally *t) {
  const campaign_plan *plan = &s->plan;
  const double start_s = now_s();
  pid_t workers[256];
  uint64_t current[256] = {0};
  int ends[2];
  if (pipe(ends) != 0)
    die("no", "pipe");
  for (int j = 0; j < plan->jobs; j++) {
    if ((workers[j] = fork()) < 0)
      die("no", "process");
    if (workers[j] > 0)
      continue;
    (void)close(ends[0]);
    one_thread();
    work(plan, j, start_s, ends[1]);
    _exit(0);
  }
  (void)close(ends[1]);
  const int64_t defects = collect(plan, start_s, ends[0], t, current);
  (void)close(ends[0]);
  const bool well = wait_for(plan, workers, current);
  const double seconds = now_s() - start_s;
  printf("# Campaign%s: seed %" PRIu64 ", device %s, start %s, %.0f s\n\n",
         plan->parts == 2 ? " of complex systems" : "", plan->seed,
         devices[plan->device], starts[plan->start - CAMPAIGN_START_MIXED],
         seconds);
  campaign_print(t, stdout);
  printf("\nDefects: %" PRId64 "%s\n", defects, well ? "" : ", and a crash");
  if (s->json) {
    FILE *f = fopen(s->json, "w");
    if (f == NULL)
      die("cannot write", s->json);
    campaign_print_json(t, plan, seconds, f);
    (void)fclose(f);
  }
  return defects == 0 && well ? 0 : 1;
}

static int replay(const settings *s, campaign_tally *t) {
  campaign_system system;
  campaign_record r;
  reference ref = {0};
  one_thread();
  campaign_draw(&system, &s->plan, s->replay_seed);
  campaign_describe(&system, stdout);
  campaign_check(&system, &ref, &r);
  printf("\nstatus %d, reference %d (contraction %.1e), condition %.2e, dgesv "
         "%d, dsgesv %d\n",
         r.status, r.reference, ref.contraction, r.condition, r.dgesv_info,
         r.dsgesv_info);
  for (int c = 0; c < r.nrhs; c++) {
    const campaign_column *q = &r.column[c];
    printf("column %d %-9s status %d precision %d omega %.3g eps, stated %.3g; "
           "error %.3e bound %.3e reference %.0e; dgesv %.3g eps %.3e; dsgesv "
           "%.3g eps %.3e\n",
           c, gallery_rhs_names[q->kind], q->status, q->precision,
           q->omega * 0x1p53, q->stated_omega * 0x1p53, q->error, q->bound,
           q->reference_error, q->dgesv_omega * 0x1p53, q->dgesv_error,
           q->dsgesv_omega * 0x1p53, q->dsgesv_error);
  }
  const int defects = campaign_count(t, &r);
  campaign_accuse(&r, stdout);
  campaign_free(&system);
  reference_free(&ref);
  return defects ? 1 : 0;
}

int main(int argc, char **argv) {
  settings s;
  take_arguments(&s, argc, argv);
  campaign_tally *t = campaign_tally_create();
  const int result = s.replay ? replay(&s, t) : run(&s, t);
  campaign_tally_destroy(t);
  return result;
}
