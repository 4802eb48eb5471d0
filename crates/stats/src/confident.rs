//! Early stopping at a chosen risk of a verdict different from that of the full run.
//!
//! `decided` is [`Threshold::decide`](crate::Threshold::decide): it stops once no missing trial can
//! change the verdict. `confident` stops once the full run would give a different verdict with
//! probability at most alpha, for any true rate.
//!
//! The evidence for "the full run passes" is a likelihood ratio: the likelihood of the observed
//! sequence, averaged over all passing totals, against that of the best failing total. It is a
//! supermartingale and ever reaches 1/alpha with probability at most alpha under any failing total
//! (Ville 1939; after Waudby-Smith & Ramdas 2020). "The full run fails" is the same with passes and
//! failures swapped.

use crate::threshold::{Decision, Threshold};

/// Relative tolerance of the bound: an evidence of 20 may be computed as 19.999….
const TOLERANCE: f64 = 1e-9;

/// Evidence of the trials so far for either verdict of the full run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullRunEvidence {
    /// For "it passes"; infinite if that is certain.
    pub pass: f64,
    /// For "it fails"; infinite if that is certain.
    pub fail: f64,
}

/// Returns the evidence after `passed` and `failed` of `planned` trials, `needed` of which must pass.
///
/// For reports; [`Boundaries`] decides trial by trial in constant time.
pub fn full_run_evidence(passed: u64, failed: u64, needed: u64, planned: u64) -> FullRunEvidence {
    let needed_failures = (planned + 1).saturating_sub(needed);
    FullRunEvidence {
        pass: evidence(passed, failed, needed, planned),
        fail: evidence(failed, passed, needed_failures, planned),
    }
}

/// Returns the mean of h(S) over S = `needed`..`planned`, divided by h(`needed` - 1), where h(S) is the
/// probability of the sequence if S of `planned` are hits. Terms are computed from their neighbours, so
/// nothing overflows before the result does.
fn evidence(hits: u64, misses: u64, needed: u64, planned: u64) -> f64 {
    if hits >= needed {
        return f64::INFINITY;
    }
    if needed > planned || hits + misses > planned || misses > planned - needed {
        return 0.0;
    }
    let left = planned - hits - misses;
    let (mut term, mut sum) = (1.0_f64, 0.0);
    for total in needed - 1..hits + left {
        let more = (total - hits) as f64;
        term *=
            (left as f64 - more) * (total + 1) as f64 / ((more + 1.0) * (planned - total) as f64);
        sum += term;
        // Ratios of neighbours only fall, so a small term is followed by smaller ones.
        if term < sum * 1e-18 {
            break;
        }
    }
    sum / (planned - needed + 1) as f64
}

/// Stopping boundaries for a plan, a threshold and a risk.
///
/// Time and memory are linear in the plan, so it also works for a suite of a hundred thousand cases whose
/// verdicts are the trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundaries {
    /// `pass[misses]`: passes that suffice with this many trials that did not pass.
    pass: Vec<u64>,
    /// `fail[others]`: failures that suffice with this many trials that did not fail.
    fail: Vec<u64>,
}

impl Boundaries {
    /// Computes the boundaries for `planned` trials at risk `alpha`.
    ///
    /// An `alpha` that is not between 0 and 1 allows no risk, which is the rule `decided`.
    pub fn new(threshold: Threshold, planned: u64, alpha: f64) -> Boundaries {
        let needed = threshold.needed(planned);
        let bound =
            if alpha > 0.0 && alpha < 1.0 { (1.0 - TOLERANCE) / alpha } else { f64::INFINITY };
        Boundaries {
            pass: boundary(needed, planned, bound),
            fail: boundary(planned - needed + 1, planned, bound),
        }
    }

    /// Decides after `passed`, `failed` and `errored` trials, counted as a prefix of the plan.
    ///
    /// An errored trial counts against the side being claimed. At least one must have been judged.
    /// Constant time.
    pub fn decide(&self, passed: u64, failed: u64, errored: u64) -> Decision {
        let reached = |boundary: &[u64], misses: u64, hits: u64| {
            let index = usize::try_from(misses).unwrap_or(usize::MAX);
            boundary.get(index).is_some_and(|&enough| hits >= enough)
        };
        if passed + failed == 0 {
            Decision::Open
        } else if reached(&self.pass, failed + errored, passed) {
            Decision::Passed
        } else if reached(&self.fail, passed + errored, failed) {
            Decision::Failed
        } else {
            Decision::Open
        }
    }

    /// Returns, for each number of trials that did not pass, from 0, the passes that suffice.
    pub fn passes(&self) -> &[u64] {
        &self.pass
    }

    /// Returns, for each number of trials that did not fail, from 0, the failures that suffice.
    pub fn failures(&self) -> &[u64] {
        &self.fail
    }
}

/// Returns, for each number of misses with which `needed` of `planned` hits are possible, the fewest hits
/// whose evidence reaches `bound`.
///
/// Evidence grows with hits and falls with misses, so the boundary is a staircase, which the loop
/// follows. With all totals equally likely beforehand, `beyond` is the probability that the total is at
/// least `needed` and `edge` that it is `needed - 1`; one more trial changes both by a rational
/// factor or term, because the total is at least `needed` exactly when at most `hits` of `needed`
/// marked items are among hits + misses + 1 drawn from `planned + 1`.
fn boundary(needed: u64, planned: u64, bound: f64) -> Vec<u64> {
    if needed > planned {
        return Vec::new();
    }
    let (n, k) = (planned as f64, needed as f64);
    let totals = n - k + 1.0;
    let (mut edge, mut beyond) = (1.0 / (n + 1.0), totals / (n + 1.0));
    let mut hits = 0_u64;
    let mut staircase = Vec::new();
    for misses in 0..=planned - needed {
        let f = misses as f64;
        while hits < needed && beyond < bound * totals * edge {
            let s = hits as f64;
            let left = n - s - f;
            beyond += edge * k * (totals - f) / ((s + 1.0) * left);
            edge *= (k - 1.0 - s) * (s + f + 2.0) / ((s + 1.0) * left);
            hits += 1;
        }
        staircase.push(hits);
        let s = hits as f64;
        let left = n - s - f;
        if left > 0.0 {
            beyond -= edge * k * (totals - f) / ((f + 1.0) * left);
            edge *= (totals - f) * (s + f + 2.0) / ((f + 1.0) * left);
        }
    }
    staircase
}

#[cfg(test)]
mod tests;
