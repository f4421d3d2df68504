#pragma once
// The statistics that reports use, from their definitions. Pure functions; a value that is not
// defined (no data) is NaN.

#include <cstdint>
#include <span>

namespace ptxbench::report {

struct Interval {
  double low = 0, high = 1;
};

// Wilson score interval of a proportion (E. B. Wilson, JASA 22, 1927), two-sided at 95 %.
// 0 of 0 is [0, 1].
Interval wilson(uint64_t successes, uint64_t trials);

// Unbiased estimate of the chance that k draws out of n attempts, c of them right, hold a right
// one: 1 - C(n-c, k) / C(n, k) (Chen et al., "Evaluating large language models trained on code",
// 2021). NaN for k > n or k = 0.
double pass_at_k(uint64_t n, uint64_t c, uint64_t k);

// Of positive numbers; NaN for none.
double geometric_mean(std::span<const double> values);

double mean(std::span<const double> values);
double median(std::span<const double> values);  // of two middle ones their mean

// Spearman's rank correlation, ties at their mean rank; NaN for fewer than 3 pairs or no variation.
double rank_correlation(std::span<const double> x, std::span<const double> y);

// Exact two-sided sign test of wins against losses (ties left out beforehand): the binomial chance
// of a split at least as uneven. With one pair of outcomes per trial it is McNemar's exact test.
double sign_test(uint64_t wins, uint64_t losses);

// 95 % percentile interval of the mean of `differences`, resampled 2,000 times (paired bootstrap).
// The same data give the same interval. NaN for fewer than 2 values.
Interval bootstrap_mean(std::span<const double> differences);

}  // namespace ptxbench::report
