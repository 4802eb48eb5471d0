//! Slowdown of a server above its capacity, as of a GPU server.

use crate::Knee;

/// Returns the factor on the latency for a number of requests in flight, this one included.
///
/// The factor is 1 up to `k`. Above `k` it grows in proportion, so throughput stays constant; above
/// `thrash_at` it grows with the square, so throughput falls.
pub(crate) fn slowdown(knee: Knee, in_flight: u64) -> f64 {
    let excess = |level: u64| (in_flight as f64 / level.max(1) as f64).max(1.0);
    excess(knee.k) * knee.thrash_at.map_or(1.0, excess)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_rises_then_stays_constant_then_falls() {
        let knee = Knee { k: 24, thrash_at: Some(200) };
        let throughput = |n: u64| n as f64 / slowdown(knee, n);
        assert_eq!(throughput(12), 12.0);
        assert_eq!(throughput(24), 24.0);
        assert!((throughput(48) - 24.0).abs() < 1e-9);
        assert!((throughput(200) - 24.0).abs() < 1e-9);
        assert!((throughput(400) - 12.0).abs() < 1e-9);
        assert_eq!(slowdown(Knee { k: 24, thrash_at: None }, 240), 10.0);
    }
}
