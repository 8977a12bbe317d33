/* The limit: one epoch of training 16 models at once as a programmer would write it by hand for these sizes.
 *
 * Forward, backward, AdamW, and a validation pass that keeps the best weights. Everything has its size fixed at compile
 * time and the models are the innermost axis, which the compiler turns into vector instructions. For one model the same
 * source is compiled with LANES = 1.
 */
#include <math.h>
#include <string.h>

#ifndef LANES
#define LANES 16
#endif
#define NX 5
#define NU 3
#define NY 3
#define STEPS 300
#define WEIGHTS (NX * NX + NX * NU + NY * NX + NY * NU)
typedef REAL lanes[LANES];
#define EACH for (int r = 0; r < LANES; ++r)

typedef struct {
  lanes A[NX][NX], B[NX][NU], C[NY][NX], D[NY][NU];
} system_t;

static lanes x[STEPS + 1][NX], error[STEPS][NY];

static void loss(const system_t *s, const lanes u[STEPS][NU], const lanes y[STEPS][NY], lanes total) {
  memset(x[0], 0, sizeof x[0]);
  EACH total[r] = 0;
  for (int k = 0; k < STEPS; ++k) {
    for (int i = 0; i < NY; ++i) {
      lanes sum;
      EACH sum[r] = -y[k][i][r];
      for (int j = 0; j < NX; ++j) EACH sum[r] += s->C[i][j][r] * x[k][j][r];
      for (int j = 0; j < NU; ++j) EACH sum[r] += s->D[i][j][r] * u[k][j][r];
      EACH error[k][i][r] = sum[r];
      EACH total[r] += sum[r] * sum[r];
    }
    for (int i = 0; i < NX; ++i) {
      lanes sum;
      EACH sum[r] = 0;
      for (int j = 0; j < NX; ++j) EACH sum[r] += s->A[i][j][r] * x[k][j][r];
      for (int j = 0; j < NU; ++j) EACH sum[r] += s->B[i][j][r] * u[k][j][r];
      EACH x[k + 1][i][r] = sum[r];
    }
  }
  EACH total[r] /= STEPS * NY;
}

static void gradient(const system_t *s, const lanes u[STEPS][NU], system_t *g) {
  lanes l[NX];
  memset(l, 0, sizeof l);
  memset(g, 0, sizeof *g);
  for (int k = STEPS - 1; k >= 0; --k) {
    lanes next[NX], e[NY];
    for (int i = 0; i < NY; ++i) EACH e[i][r] = error[k][i][r] * (REAL)(2.0 / (STEPS * NY));
    for (int i = 0; i < NX; ++i)
      for (int j = 0; j < NX; ++j) EACH g->A[i][j][r] += l[i][r] * x[k][j][r];
    for (int i = 0; i < NX; ++i)
      for (int j = 0; j < NU; ++j) EACH g->B[i][j][r] += l[i][r] * u[k][j][r];
    for (int i = 0; i < NY; ++i)
      for (int j = 0; j < NX; ++j) EACH g->C[i][j][r] += e[i][r] * x[k][j][r];
    for (int i = 0; i < NY; ++i)
      for (int j = 0; j < NU; ++j) EACH g->D[i][j][r] += e[i][r] * u[k][j][r];
    for (int j = 0; j < NX; ++j) {
      lanes sum;
      EACH sum[r] = 0;
      for (int i = 0; i < NX; ++i) EACH sum[r] += s->A[i][j][r] * l[i][r];
      for (int i = 0; i < NY; ++i) EACH sum[r] += s->C[i][j][r] * e[i][r];
      EACH next[j][r] = sum[r];
    }
    memcpy(l, next, sizeof l);
  }
}

/* weights, two moments, best weights: WEIGHTS x LANES; best: LANES; data: STEPS x channels x LANES. */
void train(REAL *weights, REAL *first, REAL *second, REAL *best_weights, REAL *best, const REAL *u, const REAL *y,
           const REAL *u_val, const REAL *y_val, int epochs) {
  static system_t g;
  lanes value;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    loss((const system_t *)weights, (const lanes(*)[NU])u, (const lanes(*)[NY])y, value);
    gradient((const system_t *)weights, (const lanes(*)[NU])u, &g);
    const REAL rate = (REAL)1e-3, c1 = (REAL)(1 / (1 - pow(0.9, epoch))), c2 = (REAL)(1 / (1 - pow(0.999, epoch)));
    const REAL *slope = (const REAL *)&g;
    for (int i = 0; i < WEIGHTS * LANES; ++i) {
      first[i] += (REAL)0.1 * (slope[i] - first[i]);
      second[i] += (REAL)0.001 * (slope[i] * slope[i] - second[i]);
      weights[i] -= rate * ((REAL)0.004 * weights[i] + first[i] * c1 / ((REAL)sqrt(second[i] * c2) + (REAL)1e-7));
    }
    loss((const system_t *)weights, (const lanes(*)[NU])u_val, (const lanes(*)[NY])y_val, value);
    for (int i = 0; i < WEIGHTS; ++i)
      EACH if (value[r] < best[r]) best_weights[i * LANES + r] = weights[i * LANES + r];
    EACH if (value[r] < best[r]) best[r] = value[r];
  }
}
