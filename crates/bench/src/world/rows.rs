//! Providers of the comparison.

use super::strategy::WorldStrategy;

/// A provider and its work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorldRow {
    pub(crate) name: String,
    /// Keys of the profile, as TOML.
    pub(crate) profile: String,
    pub(crate) calls: u32,
    pub(crate) reference: Reference,
    pub(crate) strategies: RowStrategies,
    /// Limit per minute, for `proactive`.
    pub(crate) rpm: Option<u32>,
    /// Streams per connection of an HTTP/2 proxy.
    pub(crate) http2_streams: Option<u32>,
}

/// Time with which the strategies are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reference {
    /// Time computed from the limits of the profile, with at most this number in flight.
    Ideal { ceiling: u32 },
    /// Time of the best fixed concurrency limit of at most this number, in virtual time.
    SimulatedFixed { ceiling: u32 },
    /// Time of the best fixed concurrency limit, found by a search on the same provider.
    BestFixed {
        /// Approximate seconds of one run, for the estimate of the total time.
        expected_seconds: f64,
    },
}

/// Strategies of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RowStrategies {
    /// Those of the command.
    Chosen,
    /// Those of the command and these.
    ChosenAnd(&'static [WorldStrategy]),
    /// Only these.
    Only(&'static [WorldStrategy]),
}

impl RowStrategies {
    /// Returns the strategies to measure.
    pub(crate) fn select(self, chosen: &[WorldStrategy]) -> Vec<WorldStrategy> {
        let (chosen, own) = match self {
            RowStrategies::Chosen => (chosen, &[][..]),
            RowStrategies::ChosenAnd(own) => (chosen, own),
            RowStrategies::Only(own) => (&[][..], own),
        };
        let mut all = chosen.to_vec();
        all.extend(own.iter().filter(|one| !chosen.contains(one)));
        all
    }
}

const IDEAL: Reference = Reference::Ideal { ceiling: super::strategy::CEILING };

/// Returns all providers. `scale` multiplies the number of calls and the times of changes and outages.
pub(crate) fn rows(scale: f64) -> Vec<WorldRow> {
    let row = |name: &str, calls: f64, profile: String| WorldRow {
        name: name.to_owned(),
        profile,
        // At least two calls, so that there is something to schedule; the cast saturates.
        calls: ((calls * scale).round() as u32).max(2),
        reference: IDEAL,
        strategies: RowStrategies::Chosen,
        rpm: None,
        http2_streams: None,
    };
    let best_fixed = |seconds: f64| Reference::BestFixed { expected_seconds: seconds * scale };
    let second = |seconds: f64| seconds * scale;
    let fixed = |ms: u32| format!("latency = {{ kind = \"fixed\", ms = {ms} }}\n");
    let uniform = |min_ms: u32, max_ms: u32| {
        format!("latency = {{ kind = \"uniform\", min_ms = {min_ms}, max_ms = {max_ms} }}\n")
    };
    let batching = "batching = { base_ms = 1000, per_request_ms = 11.5 }";
    let cap_30 =
        |hint: &str| format!("{}concurrency = 30\nretry_after = \"{hint}\"", uniform(800, 1200));
    vec![
        row(
            "bucket-jitter",
            520.0,
            format!(
                "{}requests = {{ rate_per_s = 8, burst = 8 }}\nretry_after = \"2s\"",
                uniform(1200, 2800)
            ),
        ),
        row("cap-30-hint-20s", 1830.0, cap_30("20s")),
        row("cap-30-hint-60s", 1830.0, cap_30("60s")),
        WorldRow {
            reference: best_fixed(60.0),
            ..row("random-429", 300_000.0, format!("{}reject_rate = 0.05", fixed(50)))
        },
        WorldRow { reference: best_fixed(60.0), ..row("batching-3000", 3000.0, batching.into()) },
        WorldRow { reference: best_fixed(10.0), ..row("batching-400", 400.0, batching.into()) },
        row(
            "window-37-per-7s",
            370.0,
            format!("{}window = {{ requests = 37, seconds = 7 }}", fixed(500)),
        ),
        row(
            "cap-30-status-503",
            1830.0,
            format!("{}concurrency = 30\nreject_status = 503", uniform(800, 1200)),
        ),
        row(
            "outage-503-cap-30",
            1800.0,
            format!(
                "{}concurrency = 30\noutages = [{{ from_s = {}, to_s = {}, status = 503 }}]",
                fixed(1000),
                second(30.0),
                second(65.0)
            ),
        ),
        row(
            "outage-529-rate-10",
            510.0,
            format!(
                "{}requests = {{ rate_per_s = 10, burst = 10 }}\n\
                 outages = [{{ from_s = {}, to_s = {}, status = 529 }}]",
                fixed(1000),
                second(30.0),
                second(120.0)
            ),
        ),
        WorldRow {
            reference: Reference::Ideal { ceiling: 100 },
            strategies: RowStrategies::Only(&[WorldStrategy::Fixed(100)]),
            http2_streams: Some(10),
            ..row("http2-10-streams", 1000.0, fixed(300))
        },
        row(
            "stalls-1-in-6",
            1200.0,
            format!("{}concurrency = 60\nfaults = {{ stall = 0.1667 }}", uniform(2000, 4000)),
        ),
        row(
            "faults-5-percent",
            1800.0,
            format!(
                "{}concurrency = 30\nreject_rate = 0.0083\n\
                 faults = {{ reset = 0.0083, stall = 0.0083, malformed = 0.0083, status_500 = 0.0083, \
                 status_201 = 0.0083 }}",
                uniform(800, 1200)
            ),
        ),
        WorldRow {
            strategies: RowStrategies::ChosenAnd(&[
                WorldStrategy::Proactive,
                WorldStrategy::Reactive,
            ]),
            rpm: Some(10),
            // The window of `proactive` and `reactive` is a minute and does not scale.
            calls: 20,
            ..row(
                "sliding-10-per-60s",
                20.0,
                format!(
                    "{}sliding_window = {{ requests = 10, seconds = 60 }}\nconnect_ms = 100",
                    fixed(500)
                ),
            )
        },
        row(
            "slow-connect-cap-20",
            2400.0,
            format!("{}concurrency = 20\nconnect_ms = 200", fixed(500)),
        ),
        row(
            "cap-10-40-20",
            1400.0,
            format!(
                "{}concurrency = 10\nconcurrency_steps = [{{ at_s = {}, concurrency = 40 }}, \
                 {{ at_s = {}, concurrency = 20 }}]",
                fixed(1000),
                second(20.0),
                second(40.0)
            ),
        ),
        row(
            "rate-5-20-8",
            665.0,
            format!(
                "{}requests = {{ rate_per_s = 5, burst = 5 }}\n\
                 steps = [{{ at_s = {}, requests_per_s = 20 }}, {{ at_s = {}, requests_per_s = 8 }}]",
                fixed(500),
                second(20.0),
                second(40.0)
            ),
        ),
    ]
}
