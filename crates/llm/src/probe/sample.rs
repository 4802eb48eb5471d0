//! Observations of single requests.

/// A finished request. Times are seconds since the start of the probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RequestSample {
    pub(super) sent: f64,
    pub(super) ended: f64,
    pub(super) outcome: SampleOutcome,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SampleOutcome {
    Accepted { tokens: u64 },
    Rejected,
    Failed,
}

impl RequestSample {
    pub(super) fn latency(&self) -> f64 {
        self.ended - self.sent
    }

    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.outcome, SampleOutcome::Accepted { .. })
    }

    pub(super) fn is_rejected(&self) -> bool {
        self.outcome == SampleOutcome::Rejected
    }

    pub(super) fn tokens(&self) -> u64 {
        match self.outcome {
            SampleOutcome::Accepted { tokens } => tokens,
            _ => 0,
        }
    }
}

/// Returns a quantile by nearest rank, or `None` without values. Interpolation would add nothing for samples
/// this small.
pub(super) fn quantile(values: impl Iterator<Item = f64>, level: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((level * last as f64).round() as usize).copied()
}

/// Returns the median latency of accepted requests.
pub(super) fn median_latency(samples: &[RequestSample]) -> Option<f64> {
    quantile(samples.iter().filter(|s| s.is_accepted()).map(RequestSample::latency), 0.5)
}

/// Returns the highest number of accepted requests that were in flight together for a significant time.
///
/// Shorter peaks are ignored: when many responses arrive at once, the client still counts requests as in
/// flight that are finished for the provider.
pub(super) fn peak_concurrency(samples: &[RequestSample]) -> f64 {
    let accepted = || samples.iter().filter(|s| s.is_accepted());
    let significant_seconds = 0.1 * median_latency(samples).unwrap_or(0.0);
    let mut edges: Vec<(f64, i32)> =
        accepted().flat_map(|s| [(s.sent, 1), (s.ended, -1)]).collect();
    // At equal times ends come first, because the next request takes the slot of the finished one.
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut seconds_at = vec![0.0; samples.len() + 1];
    let mut concurrency = 0_i32;
    for pair in edges.windows(2) {
        concurrency += pair[0].1;
        if let Some(seconds) = seconds_at.get_mut(concurrency.unsigned_abs() as usize) {
            *seconds += pair[1].0 - pair[0].0;
        }
    }
    let mut seconds_above = 0.0;
    let peak = seconds_at.iter().rposition(|seconds| {
        seconds_above += seconds;
        seconds_above > significant_seconds
    });
    peak.unwrap_or(0) as f64
}

/// Returns the longest time for which all requests were rejected, in seconds.
pub(super) fn max_rejection_span(samples: &[RequestSample]) -> f64 {
    let mut sorted: Vec<&RequestSample> = samples.iter().collect();
    sorted.sort_by(|one, other| one.sent.total_cmp(&other.sent));
    let mut max_span: f64 = 0.0;
    let mut since = None;
    for sample in sorted {
        if sample.is_rejected() {
            since.get_or_insert(sample.ended);
        } else if sample.is_accepted() {
            max_span = max_span.max(since.take().map_or(0.0, |since| sample.sent - since));
        }
    }
    max_span
}

/// Returns the highest number of requests that were accepted with no rejection between them.
pub(super) fn max_accepted_run(samples: &[RequestSample]) -> u32 {
    let mut sorted: Vec<&RequestSample> = samples.iter().collect();
    sorted.sort_by(|one, other| one.sent.total_cmp(&other.sent));
    let (mut run, mut longest) = (0, 0);
    for sample in sorted {
        run = if sample.is_rejected() { 0 } else { run + u32::from(sample.is_accepted()) };
        longest = longest.max(run);
    }
    longest
}
