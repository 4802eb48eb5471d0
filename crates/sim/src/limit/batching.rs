//! Slowdown of a server with continuous batching.

use crate::Batching;

/// Returns the factor on the latency for a number of requests in flight, this one included.
///
/// Real decoding steps slow down and speed up while a request is served. Here its latency is fixed by
/// the load at its admission. With a constant number in flight both agree: latency grows linearly, and
/// throughput is `n / (base + n * per_request)`. While the load rises, requests finish earlier than at
/// a real server, and while it falls, later.
pub(crate) fn batching_slowdown(batching: Batching, in_flight: u64) -> f64 {
    1.0 + in_flight as f64 * batching.per_request_ms / batching.base_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Throughput of `transformers serve --continuous-batching` on one H200 (64 tokens per answer,
    /// closed loop) by requests in flight.
    const MEASURED: [(u64, f64); 7] =
        [(1, 0.81), (16, 8.4), (64, 28.2), (100, 45.3), (256, 51.1), (400, 62.2), (1000, 78.9)];

    #[test]
    fn throughput_is_concave_and_close_to_a_real_server() {
        let batching = Batching { base_ms: 1000.0, per_request_ms: 11.5 };
        let throughput = |n: u64| n as f64 / batching_slowdown(batching, n);
        for (in_flight, measured) in MEASURED {
            let ratio = throughput(in_flight) / measured;
            assert!((0.95..1.7).contains(&ratio), "{in_flight}: {ratio}");
        }
        let gains: Vec<f64> =
            MEASURED.windows(2).map(|pair| throughput(pair[1].0) - throughput(pair[0].0)).collect();
        assert!(gains.iter().all(|gain| *gain > 0.0));
        assert!(throughput(100_000) < 1000.0 / 11.5);
    }
}
