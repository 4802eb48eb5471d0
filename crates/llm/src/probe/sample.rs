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
