//! A server that slows down when it is full, as one with GPUs does.

use crate::Knee;

/// By how much latency grows when so many requests are in flight, this one included.
///
/// Up to `k` not at all. Above, in proportion, so throughput stays as it is at `k`. Above
/// `thrash_at` by as much again, so throughput falls.
pub(crate) fn slowdown(knee: Knee, in_flight: u64) -> f64 {
    let over = |level: u64| (in_flight as f64 / level.max(1) as f64).max(1.0);
    over(knee.k) * knee.thrash_at.map_or(1.0, over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_rises_then_stays_then_falls() {
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
