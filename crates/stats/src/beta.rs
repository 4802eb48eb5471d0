//! The incomplete beta function, in logarithms, and its inverse.
//!
//! All binomial probabilities of this crate use it. The version in statrs stops its continued fraction
//! after 140 terms, which for a million trials is wrong in the third digit, and returns no logarithms,
//! without which evidence against a distant rate is 0/0.

use statrs::function::gamma::ln_gamma;

/// Logarithms of both tails of a beta distribution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tails {
    /// ln I_x(a, b).
    pub(crate) below: f64,
    /// ln (1 - I_x(a, b)).
    pub(crate) above: f64,
}

/// Limit of the continued fraction, which needs about the square root of the larger parameter.
const MAX_TERMS: u32 = 100_000;

/// ln B(a, b).
pub(crate) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Both tails of Beta(`a`, `b`) at `x`; parameters positive, `x` is clamped to 0..1.
pub(crate) fn tails(a: f64, b: f64, x: f64) -> Tails {
    if x <= 0.0 {
        return Tails { below: f64::NEG_INFINITY, above: 0.0 };
    }
    if x >= 1.0 {
        return Tails { below: 0.0, above: f64::NEG_INFINITY };
    }
    let front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    // The fraction converges quickly only on the near side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        let below = (front - a.ln() + fraction(a, b, x).ln()).min(0.0);
        Tails { below, above: complement(below) }
    } else {
        let above = (front - b.ln() + fraction(b, a, 1.0 - x).ln()).min(0.0);
        Tails { below: complement(above), above }
    }
}

/// I_x(a, b).
pub(crate) fn cumulative(a: f64, b: f64, x: f64) -> f64 {
    tails(a, b, x).below.exp()
}

/// Returns the `share` quantile of Beta(`a`, `b`) by Newton's method inside a shrinking bracket.
pub(crate) fn quantile(a: f64, b: f64, share: f64) -> f64 {
    if share <= 0.0 {
        return 0.0;
    }
    if share >= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    let mut x = a / (a + b);
    for _ in 0..200 {
        let excess = cumulative(a, b, x) - share;
        if excess < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let density = ((a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - ln_beta(a, b)).exp();
        let newton = x - excess / density;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - x).abs() <= f64::EPSILON * x {
            return next;
        }
        x = next;
    }
    x
}

/// ln (1 - e^`ln`).
fn complement(ln: f64) -> f64 {
    (-ln.exp_m1()).ln()
}

/// Returns the continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), evaluated
/// by Lentz's method (1976).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for term in 1..MAX_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        product *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        product *= c * d;
        if (c * d - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Integer parameters give binomial tails, summed by hand.
    #[test]
    fn integers_are_binomial_tails() {
        // P(Bin(5, 0.3) >= 2) = 1 - 0.7^5 - 5·0.3·0.7^4.
        assert!((cumulative(2.0, 4.0, 0.3) - 0.47178).abs() < 1e-12);
        assert!((tails(1.0, 400.0, 0.9).above - 400.0 * 0.1_f64.ln()).abs() < 1e-9);
        assert_eq!(cumulative(2.0, 4.0, 0.0), 0.0);
        assert_eq!(cumulative(2.0, 4.0, 1.0), 1.0);
    }

    #[test]
    fn stays_exact_for_many_trials() {
        assert!((cumulative(5e4, 5e4, 0.5) - 0.5).abs() < 1e-9);
        assert!((cumulative(5e5, 5e5, 0.5) - 0.5).abs() < 1e-8);
        let middle = quantile(7e4, 3e4, 0.5);
        // The median's expansion (a - 1/3)/(a + b - 2/3) is good to 1e-10 here.
        assert!((middle - (7e4 - 1.0 / 3.0) / (1e5 - 2.0 / 3.0)).abs() < 1e-9, "{middle}");
    }

    proptest! {
        #[test]
        fn quantile_inverts(a in 0.5_f64..2000.0, b in 0.5_f64..2000.0, share in 0.001_f64..0.999) {
            let x = quantile(a, b, share);
            prop_assert!((cumulative(a, b, x) - share).abs() < 1e-9);
        }

        #[test]
        fn tails_sum_to_one(a in 0.5_f64..2000.0, b in 0.5_f64..2000.0, x in 0.0_f64..=1.0) {
            let both = tails(a, b, x);
            prop_assert!((both.below.exp() + both.above.exp() - 1.0).abs() < 1e-12);
        }
    }
}
