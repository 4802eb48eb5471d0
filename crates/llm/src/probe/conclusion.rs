//! Conclusions from the evidence of a probe: whether the limit is known, and what it is.

use super::evidence::Evidence;
use super::finding::LimitFinding;
use super::fit::{Fit, FitScope, RateFit};

/// Contradictions by which one kind of limit must be worse than another to be refuted.
const MIN_CONTRADICTIONS: u32 = 3;
/// Ratio of the highest and the lowest plausible rate from which a rate is known.
pub(super) const MAX_UNCERTAINTY: f64 = 1.12;
/// The same after few accepted requests.
const MIN_UNCERTAINTY: f64 = 1.08;
/// The same at the end of the measurement, when there will be no more requests.
pub(super) const MAX_FINAL_UNCERTAINTY: f64 = 1.35;
/// The same if the measurement ended before all planned experiments.
const MAX_EARLY_UNCERTAINTY: f64 = 1.3;
/// Maximum share of requests that may contradict a known rate.
const MAX_CONTRADICTION_SHARE: f64 = 0.03;
/// Minimum number of requests accepted after the first rejection for a known rate.
const MIN_ACCEPTED: usize = 12;

/// Whether a rate explains the requests much better than a cap.
pub(super) fn refutes_cap(found: &Fit) -> bool {
    found.cap.contradictions >= found.rate.contradictions + MIN_CONTRADICTIONS
}

/// Whether a cap explains the requests much better than a rate.
fn refutes_rate(found: &Fit) -> bool {
    found.rate.contradictions >= found.cap.contradictions + MIN_CONTRADICTIONS
}

/// Whether the current level determines the rate.
pub(super) fn is_rate_known(evidence: &Evidence, found: &Fit) -> bool {
    let (accepted, _) = evidence.level_counts();
    let uncertainty = found.rate.uncertainty();
    let is_narrow = uncertainty <= MIN_UNCERTAINTY && accepted >= MIN_ACCEPTED
        || uncertainty <= MAX_UNCERTAINTY && accepted >= 3 * MIN_ACCEPTED;
    is_narrow && is_explained(evidence, &found.rate) && evidence.has_refills()
}

/// Whether the current level determines the cap.
pub(super) fn is_cap_known(evidence: &Evidence, found: &Fit) -> bool {
    let (accepted, rejected) = evidence.level_counts();
    let connections = found.cap.connections as usize;
    refutes_rate(found) && rejected >= 3 && accepted >= connections + 3
        || found.cap.contradictions <= found.rate.contradictions
            && rejected >= MIN_ACCEPTED
            && accepted >= 2 * connections + 8
}

/// Whether few requests contradict a rate.
fn is_explained(evidence: &Evidence, rate: &RateFit) -> bool {
    rate.contradictions <= 2 + (MAX_CONTRADICTION_SHARE * evidence.count() as f64) as u32
}

/// Returns the limit, or `None` without accepted or without rejected requests. `is_rate` tells that a cap was
/// refuted, `is_cap_tested` that requests were sent for which a cap and a rate predict different outcomes,
/// and `is_complete` that all planned experiments were made.
pub(super) fn conclude(
    evidence: &Evidence,
    is_rate: bool,
    is_cap_tested: bool,
    is_complete: bool,
) -> Option<LimitFinding> {
    let found = evidence.fit(FitScope::Simple)?;
    let cap = found.cap;
    let is_rate = is_rate || found.rate.contradictions < cap.contradictions;
    let max_uncertainty = if is_complete { MAX_FINAL_UNCERTAINTY } else { MAX_EARLY_UNCERTAINTY };
    let is_known =
        |rate: &RateFit| rate.uncertainty() <= max_uncertainty && is_explained(evidence, rate);
    let mut rate = found.rate;
    if is_rate && !is_known(&rate) {
        // Windows may explain what a bucket does not.
        let found = evidence.fit(FitScope::All)?;
        rate = found.plausible_window().unwrap_or(found.rate);
    }
    Some(match (is_rate, rate.cap) {
        (true, _) if !is_known(&rate) => LimitFinding::Unknown,
        (true, None) => LimitFinding::Rate { per_second: rate.per_second() },
        (true, Some(connections)) => {
            LimitFinding::RateAndCap { per_second: rate.per_second(), connections }
        }
        (false, _) if is_cap_tested || refutes_rate(&found) => {
            LimitFinding::Cap { connections: cap.connections }
        }
        (false, _) => LimitFinding::Unknown,
    })
}
