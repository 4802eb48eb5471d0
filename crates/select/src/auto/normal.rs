//! The normal distribution.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Returns the probability that a standard normal is below `z`, to 1e-7 (Abramowitz and Stegun, 26.2.17).
pub(super) fn below(z: f64) -> f64 {
    if z > 0.0 {
        return 1.0 - below(-z);
    }
    let t = 1.0 / (1.0 - 0.231_641_9 * z);
    let tail = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    tail * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Returns the probability that a normal variable is above 0; 0 or 1 without variance.
pub(super) fn above(mean: f64, variance: f64) -> f64 {
    if variance <= 1e-12 {
        return if mean > 1e-9 { 1.0 } else { 0.0 };
    }
    below(mean / variance.sqrt())
}

/// Draws a standard normal by the Box–Muller method, discarding the second of each pair.
pub(super) fn draw(random: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn cumulative_distribution_agrees_with_r() {
        // R: pnorm(c(-6, -2.5, -1, 0, 1.96))
        let table = [
            (-6.0, 9.865_876e-10),
            (-2.5, 0.006_209_665),
            (-1.0, 0.158_655_25),
            (0.0, 0.5),
            (1.96, 0.975_002_1),
        ];
        for (z, expected) in table {
            assert!((below(z) - expected).abs() < 1e-7, "{z}: {} {expected}", below(z));
        }
    }
    #[test]
    fn without_variance_the_probability_is_zero_or_one() {
        assert_eq!([0.1, 0.0, -0.1].map(|mean| above(mean, 0.0)), [1.0, 0.0, 0.0]);
        assert!((above(0.2, 0.04) - 0.841_344_7).abs() < 1e-6);
    }

    #[test]
    fn draws_have_mean_0_and_variance_1() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let draws: Vec<f64> = (0..10_000).map(|_| draw(&mut random)).collect();
        let mean = draws.iter().sum::<f64>() / 1e4;
        let square = draws.iter().map(|value| value * value).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }
}
