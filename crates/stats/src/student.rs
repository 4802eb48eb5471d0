//! Student's t distribution and the noncentral t.

use crate::beta;
use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;
use std::f64::consts::SQRT_2;

/// P(T > `t`) with `freedom` degrees of freedom.
pub(crate) fn above(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    // t² / (freedom + t²) is Beta(1/2, freedom/2).
    let tail = 0.5 * beta::tails(0.5, 0.5 * freedom, t * t / (freedom + t * t)).above.exp();
    if t >= 0.0 { tail } else { 1.0 - tail }
}

/// Returns the `share` quantile with `freedom` degrees of freedom, for shares of at least one half.
pub(crate) fn quantile(share: f64, freedom: f64) -> f64 {
    let y = beta::quantile(0.5, 0.5 * freedom, 2.0 * share - 1.0);
    (freedom * y / (1.0 - y)).sqrt()
}

/// P(|T| > `t`) when T has noncentrality `shift`: the power of a two-sided t test.
///
/// The normal tails are averaged over the distribution of the estimated spread (Johnson, Kotz &
/// Balakrishnan 1995, chapter 31) with Simpson's rule.
pub(crate) fn noncentral_outside(t: f64, freedom: f64, shift: f64) -> f64 {
    const PANELS: u32 = 2000;
    let spread = 10.0 / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let step = (to - from) / f64::from(PANELS);
    let half = 0.5 * freedom;
    let constant = 2.0_f64.ln() + half * half.ln() - ln_gamma(half);
    let outside = |w: f64| {
        // At w = 0 this is the density of a half normal for one degree of freedom, else 0.
        let power = if freedom == 1.0 { 0.0 } else { (freedom - 1.0) * w.ln() };
        let density = (constant + power - half * w * w).exp();
        density * (normal_above(t * w - shift) + normal_above(t * w + shift))
    };
    let inner: f64 = (1..PANELS)
        .map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * outside(from + f64::from(i) * step))
        .sum();
    (outside(from) + inner + outside(to)) * step / 3.0
}

/// P(Z > `z`) of a standard normal.
pub(crate) fn normal_above(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: SciPy 1.17, `t.ppf`.
    #[test]
    fn quantiles_agree_with_tables() {
        let table = [
            (1.0, 12.706205),
            (7.0, 2.364624),
            (19.0, 2.093024),
            (499.0, 1.964729),
            (1e8, crate::Z),
        ];
        for (freedom, expected) in table {
            let t = quantile(0.975, freedom);
            assert!((t - expected).abs() < 1e-6, "{freedom}: {t}");
            assert!((above(t, freedom) - 0.025).abs() < 1e-9);
            assert!((above(-t, freedom) - 0.975).abs() < 1e-9);
        }
    }

    #[test]
    fn zero_noncentrality_gives_the_central_t() {
        for freedom in [1.0, 2.0, 9.0, 499.0, 1e5] {
            let t = quantile(0.975, freedom);
            let outside = noncentral_outside(t, freedom, 0.0);
            assert!((outside - 0.05).abs() < 1e-8, "{freedom}: {outside}");
        }
    }
}
