// Defines the element functions of activation functions, losses and routers (see transformer_elements.hpp).
// operator()(i) computes item i.
#pragma once

#include "backend/training/element_wise.hpp"
#include "backend/training/transformer_arithmetic.hpp"

namespace rehearse::elements {

struct Activate {
  Activation kind;
  const float* x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float z = x[i];
    if (kind == Activation::relu)
      y[i] = z > 0 ? z : 0.0f;
    else
      y[i] = 0.5f * z * (1 + tanhf(kGeluScale * (z + kGeluCubic * z * z * z)));
  }
};

struct ActivateBackward {
  Activation kind;
  const float *x, *dy;
  float* dx;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float z = x[i];
    if (kind == Activation::relu) {
      dx[i] = z > 0 ? dy[i] : 0.0f;
      return;
    }
    const float t = tanhf(kGeluScale * (z + kGeluCubic * z * z * z));
    const float slope = 0.5f * (1 + t) + 0.5f * z * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCubic * z * z);
    dx[i] = dy[i] * slope;
  }
};

struct Gate {
  const float *gate, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const { y[i] = gate[i] / (1 + expf(-gate[i])) * x[i]; }
};

struct GateBackward {
  const float *gate, *x, *dy;
  float *dgate, *dx;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float share = 1 / (1 + expf(-gate[i])), above = dy[i];
    dx[i] = above * gate[i] * share;
    dgate[i] = above * x[i] * share * (1 + gate[i] * (1 - share));
  }
};

struct TokenLosses {  // by token
  const float *maxima, *sums, *label_logits;
  float* losses;
  REHEARSE_ELEMENT void operator()(long i) const { losses[i] = logf(sums[i]) + maxima[i] - label_logits[i]; }
};

struct TokenLossesBackward {  // by token
  float scale;
  const float* sums;
  float *dsums, *dlabel_logits;
  REHEARSE_ELEMENT void operator()(long i) const {
    dsums[i] = scale / sums[i];
    dlabel_logits[i] = -scale;
  }
};

struct LogitsBackward {  // by element
  long classes, first_class;
  const float *logits, *labels, *maxima, *dsums, *dlabel_logits;
  float* dlogits;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = i / classes;
    const bool label = static_cast<long>(labels[row]) == first_class + i % classes;
    dlogits[i] = expf(logits[i] - maxima[row]) * dsums[row] + (label ? dlabel_logits[row] : 0.0f);
  }
};

struct Choose {  // by token
  long experts, chosen;
  const float* logits;
  float* gates;
  REHEARSE_ELEMENT void operator()(long token) const {
    const float* logit = logits + token * experts;
    float* gate = gates + token * experts;
    for (long e = 0; e < experts; ++e) gate[e] = 0;
    float most = 0, sum = 0;
    for (long k = 0; k < chosen; ++k) {
      long best = -1;
      for (long e = 0; e < experts; ++e)
        if (gate[e] == 0 && (best < 0 || logit[e] > logit[best])) best = e;
      if (k == 0) most = logit[best];
      // A chosen expert's gate is never 0, or the expert would be chosen again.
      const float power = expf(logit[best] - most);
      gate[best] = power > 1e-30f ? power : 1e-30f;
      sum += gate[best];
    }
    for (long e = 0; e < experts; ++e) gate[e] /= sum;
  }
};

struct ChooseBackward {  // by token
  long experts;
  const float *gates, *dgates;
  float* dlogits;
  REHEARSE_ELEMENT void operator()(long token) const {
    const long begin = token * experts;
    float mean = 0;
    for (long e = 0; e < experts; ++e) mean += gates[begin + e] * dgates[begin + e];
    for (long e = 0; e < experts; ++e) dlogits[begin + e] = gates[begin + e] * (dgates[begin + e] - mean);
  }
};

// Copies tokens to the rows of their experts: row `token` of expert `e` is 0 unless the router chose that
// expert.
struct SpreadRows {  // by element of the experts' rows
  long tokens, experts, width;
  bool weighted;  // by the token's gate
  const float *gates, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = i / width, token = row % tokens;
    const float gate = gates[token * experts + row / tokens];
    y[i] = gate == 0 ? 0.0f : (weighted ? gate : 1.0f) * x[token * width + i % width];
  }
};

struct GatherRows {  // by element of the tokens' rows
  long tokens, experts, width;
  bool weighted;
  const float *gates, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long token = i / width;
    float sum = 0;
    for (long e = 0; e < experts; ++e)
      if (const float gate = gates[token * experts + e]; gate != 0)
        sum += (weighted ? gate : 1.0f) * x[(e * tokens + token) * width + i % width];
    y[i] = sum;
  }
};

struct GateSlopes {  // by gate
  long tokens, experts, width;
  const float *gates, *x, *dy;
  float* dgates;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long token = i / experts;
    const float* row = x + (i % experts * tokens + token) * width;
    float sum = 0;
    for (long j = 0; gates[i] != 0 && j < width; ++j) sum += row[j] * dy[token * width + j];
    dgates[i] = sum;
  }
};

struct ScaleRows {  // by element
  long width;
  const float *factors, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const { y[i] = factors[i / width] * x[i]; }
};

struct RowProducts {  // by row
  long width;
  const float *x, *y;
  float* factors;
  REHEARSE_ELEMENT void operator()(long row) const {
    float sum = 0;
    for (long j = row * width; j < (row + 1) * width; ++j) sum += x[j] * y[j];
    factors[row] = sum;
  }
};

}  // namespace rehearse::elements
