% SPDX-License-Identifier: BSD-3-Clause
% Solves a system with Octave and writes the system and x to $OUT.
rand ("seed", 5);
n = 400;
a = rand (n) - 0.5;
b = rand (n, 1) - 0.5;
x = a \ b;
out = fopen (getenv ("OUT"), "w");
fwrite (out, n, "double");
fwrite (out, a, "double");
fwrite (out, b, "double");
fwrite (out, x, "double");
fclose (out);

% Functions that read the factors must still work, where they are not hidden.
if (any (strcmp (argv (), "solve-only")))
  exit (0);
end
[l, u, p] = lu (a);
assert (norm (p * a - l * u, 1) < 1e-12 * n * norm (a, 1));
assert (abs (det (a)) > 0);
c = a * a' + n * eye (n);
r = chol (c);
assert (norm (r' * r - c, 1) < 1e-12 * norm (c, 1));
assert (norm (c * (c \ b) - b, 1) < 1e-10 * norm (b, 1));
