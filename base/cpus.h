/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs that the process may keep busy. */
#ifndef HONE_CPUS_H
#define HONE_CPUS_H

/* Returns their number, at least 1: the calling thread may run on so many, and
   the quota of the control group pays for them. The quota is looked up once in
   a second. */
int hone_cpus(void);

/* Returns a number that hone_cpus will not exceed later either: the CPUs of the
   machine. */
int hone_cpus_at_most(void);

/* Returns the number of threads that the environment asks for: the first
   positive number in HONE_NUM_THREADS, OPENBLAS_NUM_THREADS and
   OMP_NUM_THREADS, else INT_MAX. */
int hone_threads_wanted(void);

/* Returns the smallest quota of the control groups of this process, in CPUs,
   rounded up; INT_MAX: there is none. Looks in the file system below root, ""
   for that of the machine. */
int hone_cpu_quota(const char *root);

#endif
