//! What the probe sees of one request.

/// One request that has ended. Times are seconds since the probe's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) sent: f64,
    pub(super) ended: f64,
    pub(super) outcome: Outcome,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    Answered { tokens: u64 },
    Rejected,
    Failed,
}

impl Sample {
    pub(super) fn latency(&self) -> f64 {
        self.ended - self.sent
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.outcome, Outcome::Answered { .. })
    }

    pub(super) fn is_rejected(&self) -> bool {
        self.outcome == Outcome::Rejected
    }

    pub(super) fn tokens(&self) -> u64 {
        match self.outcome {
            Outcome::Answered { tokens } => tokens,
            _ => 0,
        }
    }
}

/// The value below which this share lies; `None` of nothing.
pub(super) fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    // The nearest rank: small samples have no business between two values.
    values.get((share * last as f64).round() as usize).copied()
}

/// Seconds that answers usually take.
pub(super) fn usual_latency(samples: &[Sample]) -> Option<f64> {
    quantile(samples.iter().filter(|s| s.is_answered()).map(Sample::latency), 0.5)
}
