//! Would the full run say the same? Stopping early at a chosen risk.
//!
//! `decided` is [`Threshold::decide`](crate::Threshold::decide): it stops when nothing missing can
//! change the answer. `confident` stops when the full run would give another answer with
//! probability at most alpha, whatever the true rate is.
//!
//! The evidence for "the full run passes" is a likelihood ratio: how likely is the sequence seen so
//! far, averaged over all passing totals, against the best failing total. As a supermartingale it
//! ever reaches 1/alpha with probability at most alpha under any failing total (Ville 1939; after
//! Waudby-Smith & Ramdas 2020). "The full run fails" is the same with passes and failures swapped.

use crate::threshold::{Decision, Threshold};

/// Evidence may miss its bound by this share and still stop: 20 is 20 when computed as 19.999….
const TOLERANCE: f64 = 1e-9;

/// How strongly the trials so far speak for either verdict of the full run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullRunEvidence {
    /// For "it passes"; infinite when it must.
    pub pass: f64,
    /// For "it fails"; infinite when it must.
    pub fail: f64,
}

/// The evidence after `passed` and `failed` of `planned` trials, `needed` of which must pass.
///
/// For reports; to decide trial by trial, [`Boundaries`] has the answer ready.
pub fn full_run_evidence(passed: u64, failed: u64, needed: u64, planned: u64) -> FullRunEvidence {
    let needed_failures = (planned + 1).saturating_sub(needed);
    FullRunEvidence {
        pass: evidence(passed, failed, needed, planned),
        fail: evidence(failed, passed, needed_failures, planned),
    }
}

/// The mean of h(S) over S = `needed`..`planned`, divided by h(`needed` - 1), where h(S) is the
/// chance of the sequence if S of `planned` are hits. Terms follow from their neighbours, so
/// nothing overflows before the answer does.
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

/// When to stop, computed once for a plan, a threshold and a risk.
///
/// Takes time and memory in proportion to the plan, so it also serves a suite of a hundred thousand
/// cases whose verdicts are the trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundaries {
    /// `pass[misses]`: the passes that suffice beside so many trials that did not pass.
    pass: Vec<u64>,
    /// `fail[others]`: the failures that suffice beside so many trials that did not fail.
    fail: Vec<u64>,
}

impl Boundaries {
    /// Boundaries for `planned` trials at risk `alpha`.
    ///
    /// An `alpha` that is not between 0 and 1 allows no risk: what remains is `decided`.
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
    /// O(1).
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

    /// For each number of trials that did not pass, from 0, the passes that suffice.
    pub fn passes(&self) -> &[u64] {
        &self.pass
    }

    /// For each number of trials that did not fail, from 0, the failures that suffice.
    pub fn failures(&self) -> &[u64] {
        &self.fail
    }
}

/// For each number of misses with which `needed` of `planned` hits are still possible: the fewest
/// hits whose evidence reaches `bound`.
///
/// Evidence grows with hits and falls with misses, so the boundary is a staircase; this walks along
/// it. With all totals equally likely beforehand, `beyond` is the probability that the total is at
/// least `needed` and `edge` that it is `needed - 1`; one more trial changes both by a rational
/// factor or term, because the total is at least `needed` exactly when at most `hits` of `needed`
/// marked items are among hits + misses + 1 drawn from `planned + 1`.
fn boundary(needed: u64, planned: u64, bound: f64) -> Vec<u64> {
    if needed > planned {
        return Vec::new();
    }
    let (n, k) = (planned as f64, needed as f64);
    let room = n - k + 1.0;
    let (mut edge, mut beyond) = (1.0 / (n + 1.0), room / (n + 1.0));
    let mut hits = 0_u64;
    let mut staircase = Vec::new();
    for misses in 0..=planned - needed {
        let f = misses as f64;
        while hits < needed && beyond < bound * room * edge {
            let s = hits as f64;
            let left = n - s - f;
            beyond += edge * k * (room - f) / ((s + 1.0) * left);
            edge *= (k - 1.0 - s) * (s + f + 2.0) / ((s + 1.0) * left);
            hits += 1;
        }
        staircase.push(hits);
        let s = hits as f64;
        let left = n - s - f;
        if left > 0.0 {
            beyond -= edge * k * (room - f) / ((f + 1.0) * left);
            edge *= (room - f) * (s + f + 2.0) / ((f + 1.0) * left);
        }
    }
    staircase
}

#[cfg(test)]
mod tests;
