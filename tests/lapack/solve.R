# SPDX-License-Identifier: BSD-3-Clause
# Solves a system with R and writes the system and x to $OUT.
set.seed(5)
n <- 400
a <- matrix(rnorm(n * n), n)
b <- rnorm(n)
x <- solve(a, b)
out <- file(Sys.getenv("OUT"), "wb")
writeBin(c(n, a, b, x), out)
close(out)

# Functions that read the factors must still work.
stopifnot(max(abs(solve(a) %*% a - diag(n))) < 1e-8)
stopifnot(inherits(try(solve(matrix(1, n, n), b), silent = TRUE), "try-error"))
stopifnot(is.finite(determinant(a)$modulus))
c <- crossprod(a) + n * diag(n)
stopifnot(max(abs(crossprod(chol(c)) - c)) < 1e-9)
