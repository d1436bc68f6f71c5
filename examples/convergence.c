/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the convergence of one solve as SVG: the error after each correction on
   a logarithmic scale, coloured by the method that made the correction, and the
   limit. Colours follow the reader's light or dark scheme. */
#include "examples/convergence.h"

#include <float.h>
#include <math.h>
#include <string.h>

void convergence_hear(convergence *heard, const hone_progress *event) {
  const double error = event->backward_error;
  if (strcmp(event->phase, "refine") != 0 || event->precision == 0 ||
      isnan(error) || heard->count >= CONVERGENCE_STEPS)
    return;
  convergence_step *now = &heard->step[heard->count];
  *now = (convergence_step){0, event->precision, event->gmres != 0, error};
  if (heard->count > 0) { /* the next method may begin with the same x */
    const bool same = event->iteration == 0 && !(error < now[-1].error) &&
                      !(error > now[-1].error);
    now->at = now[-1].at + (same ? 0 : 1);
  }
  heard->count++;
}

/* ---- drawing ---- */

enum {
  WIDTH = 640,
  HEIGHT = 400,
  LEFT = 62,
  RIGHT = 24,
  TOP = 84,
  BOTTOM = 50
};

enum { CLASSICAL, GMRES, DOUBLE, WAYS };
static const char *const way_names[WAYS] = {"refinement", "GMRES, same factors",
                                            "factors in double"};

static int way_of(const convergence_step *s) {
  return s->precision == 64 ? DOUBLE : s->gmres ? GMRES : CLASSICAL;
}

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--soft:#59636e;"
    "--grid:#dfe3e8;--w0:#0067a5;--w1:#c44601;--w2:#00794f}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e2e6ea;"
    "--soft:#9aa4ae;--grid:#343a41;--w0:#5ab4f0;--w1:#ff9147;--w2:#3ccb95}}\n"
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "fill:var(--soft);stroke:var(--paper);stroke-width:3px;"
    "stroke-linejoin:round;paint-order:stroke}\n"
    ".title{font-size:15px;font-weight:600;fill:var(--ink)}\n"
    ".grid{stroke:var(--grid)}.limit{stroke:var(--soft);stroke-dasharray:6 4}\n"
    ".line{fill:none;stroke:var(--soft);stroke-width:1.2}\n"
    ".w0{fill:var(--w0)}.w1{fill:var(--w1)}.w2{fill:var(--w2)}\n"
    "</style>\n";

/* The decades of the error axis, and the number of the last correction. */
typedef struct frame {
  double low, high;
  int last;
} frame;

static double clip(double error) { return fmax(error, 1e-20); }

static frame frame_of(const convergence *heard, double limit) {
  frame f = {floor(log10(clip(limit))), ceil(log10(clip(limit))), 1};
  for (int i = 0; i < heard->count; i++) {
    const double error = heard->step[i].error;
    if (!(error <= DBL_MAX))
      continue;
    f.low = fmin(f.low, floor(log10(clip(error))));
    f.high = fmax(f.high, ceil(log10(clip(error))));
    f.last = heard->step[i].at > f.last ? heard->step[i].at : f.last;
  }
  f.high = fmax(f.high, f.low + 1.0);
  return f;
}

static double place_x(const frame *f, double at) {
  return LEFT + (WIDTH - LEFT - RIGHT) * at / (double)f->last;
}

static double place_y(const frame *f, double error) {
  const double part = (log10(clip(error)) - f->low) / (f->high - f->low);
  return (double)(HEIGHT - BOTTOM) -
         (double)(HEIGHT - TOP - BOTTOM) * fmin(part, 1.0);
}

/* Writes text for XML, without characters that XML does not allow. */
static void write_text(FILE *file, const char *text) {
  for (; *text != 0; text++)
    if (strchr("<>&", *text) != NULL)
      fprintf(file, "&#%d;", *text);
    else if ((unsigned char)*text >= 0x20)
      fputc(*text, file);
}

static void draw_axes(FILE *file, const frame *f, const char *unit,
                      double limit) {
  const int decades = (int)(f->high - f->low), bottom = HEIGHT - BOTTOM;
  const int every = decades > 8 ? (decades + 7) / 8 : 1;
  for (int k = 0; k <= decades; k += every) {
    const double y = place_y(f, pow(10.0, f->low + k));
    fprintf(file,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>\n",
            LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4.5, (int)f->low + k);
  }
  const int step = f->last > 12 ? (f->last + 11) / 12 : 1;
  for (int k = 0; k <= f->last; k += step)
    fprintf(file,
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
            place_x(f, k), bottom + 19, k);
  fprintf(file,
          "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">corrections</text>\n"
          "<text x=\"%d\" y=\"%d\">",
          (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, 8, TOP - 16);
  write_text(file, unit);
  fprintf(file,
          "</text>\n<path class=\"limit\" d=\"M%d %.1fH%d\"/>\n<text x=\"%d\" "
          "y=\"%.1f\">accepted at %.1e or below</text>\n",
          LEFT, place_y(f, limit), WIDTH - RIGHT, LEFT + 4,
          place_y(f, limit) - 6.0, limit);
}

static void draw_steps(FILE *file, const frame *f, const convergence *heard) {
  char letter = 'M';
  fputs("<path class=\"line\" d=\"", file);
  for (int i = 0; i < heard->count; i++) {
    const convergence_step *s = &heard->step[i];
    if (s->error <= DBL_MAX)
      fprintf(file, "%c%.1f %.1f", letter, place_x(f, s->at),
              place_y(f, s->error));
    letter = s->error <= DBL_MAX ? 'L' : 'M';
  }
  fputs("\"/>\n", file);
  for (int i = 0; i < heard->count; i++) {
    const convergence_step *s = &heard->step[i];
    if (s->error <= DBL_MAX)
      fprintf(file,
              "<circle class=\"w%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>"
              "%s, after %d: %.2e</title></circle>\n",
              way_of(s), place_x(f, s->at), place_y(f, s->error),
              way_names[way_of(s)], s->at, s->error);
  }
}

/* Names the methods used, each in its colour. */
static void draw_ways(FILE *file, const convergence *heard) {
  bool used[WAYS] = {false};
  int x = WIDTH - RIGHT;
  for (int i = 0; i < heard->count; i++)
    used[way_of(&heard->step[i])] = true;
  for (int w = WAYS - 1; w >= 0; w--)
    if (used[w]) {
      fprintf(file,
              "<text class=\"w%d\" x=\"%d\" y=\"%d\" text-anchor=\"end\">"
              "&#9679; %s</text>\n",
              w, x, TOP - 16, way_names[w]);
      x -= 8 * (int)strlen(way_names[w]) + 24;
    }
}

bool convergence_draw(const convergence *heard, const char *title,
                      const char *subtitle, const char *unit, double limit,
                      FILE *file) {
  if (heard->count == 0)
    return false;
  const frame f = frame_of(heard, limit);
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
          "width=\"%d\" height=\"%d\" role=\"img\">\n%s"
          "<rect width=\"%d\" height=\"%d\" rx=\"6\" fill=\"var(--paper)\"/>\n"
          "<text class=\"title\" x=\"8\" y=\"23\">",
          WIDTH, HEIGHT, WIDTH, HEIGHT, style, WIDTH, HEIGHT);
  write_text(file, title);
  fputs("</text>\n<text x=\"8\" y=\"43\">", file);
  write_text(file, subtitle);
  fputs("</text>\n", file);
  draw_axes(file, &f, unit, limit);
  draw_steps(file, &f, heard);
  draw_ways(file, heard);
  fputs("</svg>\n", file);
  return ferror(file) == 0;
}
