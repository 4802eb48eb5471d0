//! What do the rejections depend on: how many are in flight, or how many per time?
//!
//! A cap rejects when, and only when, so many are in flight: every rejection falls into a moment
//! as crowded as the most crowded one ever accepted. A rate rejects at other times too, as soon as
//! the first burst is over. How often it accepts while it is asked too often is the rate itself,
//! however hard it is asked.

use super::sample::{Sample, quantile, usual_latency};

/// Accepted requests that a rate is measured over: one more or less is then 3 %.
const ENOUGH: usize = 30;

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// Not enough to say.
    Unclear,
    /// So many may be in flight.
    Cap(f64),
    /// So many per second, in batches that lie at most so many seconds apart.
    Rate { per_second: f64, stretch: f64 },
}

/// Looks at samples in the order of their sending. Only what was over before `horizon`, when the
/// oldest request still in flight was sent, can be judged: later moments are not counted fully yet.
/// `is_rate` when it is known to be one.
pub(super) fn judge(samples: &[Sample], horizon: f64, is_rate: bool, is_final: bool) -> Verdict {
    let seen: Vec<Sample> = samples.iter().copied().filter(|s| s.sent < horizon).collect();
    let answered: Vec<Sample> = seen.iter().copied().filter(Sample::is_answered).collect();
    let rejected: Vec<Sample> =
        seen.iter().copied().filter(|s| s.is_rejected() && s.ended < horizon).collect();
    let (Some(latency), Some(first)) = (usual_latency(&answered), rejected.first()) else {
        return Verdict::Unclear;
    };
    let crowds: Vec<f64> = rejected.iter().map(|r| crowd(&answered, r)).collect();
    let most = most_at_once(&answered);
    // Before the first answers are back, a burst and a cap look the same.
    let turned = first.sent + 0.9 * latency;
    let late: Vec<f64> = (rejected.iter().zip(&crowds))
        .filter(|(r, _)| r.sent > turned)
        .map(|(_, crowd)| *crowd)
        .collect();
    let slack = if most < 5.0 { 0.5 } else { (0.06 * most).max(1.0) };
    let lonely = late.iter().filter(|crowd| **crowd < most - slack).count();
    let since_first = answered.iter().filter(|s| s.sent > first.sent).count() as f64;
    if is_rate || late.len() >= 3 && lonely as f64 > 0.3 * late.len() as f64 {
        return rate(&seen, if is_final { 3 } else { ENOUGH });
    }
    if late.len() >= 3 && since_first >= most + 3.0 || is_final && late.is_empty() {
        let usual = quantile(crowds.into_iter(), 0.5).unwrap_or(most);
        return Verdict::Cap(usual.min(most).max(1.0));
    }
    if is_final { rate(&seen, 3) } else { Verdict::Unclear }
}

/// Accepted requests that were in flight while this one was.
fn crowd(answered: &[Sample], rejected: &Sample) -> f64 {
    let overlaps = |s: &&Sample| s.sent <= rejected.ended && s.ended > rejected.sent;
    answered.iter().filter(overlaps).count() as f64
}

/// The most accepted requests that were in flight together for a noticeable time. When many answers
/// come at once, some are in flight for the client when they are over for the provider; this lasts
/// for moments only.
pub(super) fn most_at_once(answered: &[Sample]) -> f64 {
    let noticeable = 0.1 * usual_latency(answered).unwrap_or(0.0);
    let mut edges: Vec<(f64, i32)> =
        answered.iter().flat_map(|s| [(s.sent, 1), (s.ended, -1)]).collect();
    // Ends before beginnings: one that begins when another ends takes its place.
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut seconds_at = vec![0.0; answered.len() + 1];
    let mut now = 0_i32;
    for pair in edges.windows(2) {
        now += pair[0].1;
        if let Some(seconds) = seconds_at.get_mut(now.unsigned_abs() as usize) {
            *seconds += pair[1].0 - pair[0].0;
        }
    }
    let mut above = 0.0;
    let most = seconds_at.iter().rposition(|seconds| {
        above += seconds;
        above > noticeable
    });
    most.unwrap_or(0) as f64
}

/// Accepted requests over time, from the beginning of one batch to the beginning of another. A
/// batch begins with the first accepted request after a rejection, when a bucket has just enough
/// for one, and a window has just opened.
fn rate(seen: &[Sample], enough: usize) -> Verdict {
    let mut starts: Vec<(f64, usize)> = Vec::new();
    let mut bounces: Vec<f64> = seen.iter().filter(|s| s.is_rejected()).map(|s| s.ended).collect();
    bounces.sort_by(f64::total_cmp);
    let mut bounces = bounces.into_iter().peekable();
    let mut stretch: f64 = 0.0;
    for (before, sample) in seen.iter().filter(|s| s.is_answered()).enumerate() {
        // Those that went out before the rejection was back belong to the old batch.
        let mut shut_since = None;
        while let Some(bounce) = bounces.next_if(|bounce| *bounce <= sample.sent) {
            shut_since.get_or_insert(bounce);
        }
        if let Some(since) = shut_since {
            starts.push((sample.sent, before));
            stretch = stretch.max(sample.sent - since);
        }
    }
    let Some((end, last)) = starts.last().copied() else { return Verdict::Unclear };
    // The latest stretch that is long enough: at the beginning the asking may have been too slow.
    let start = starts.iter().rev().find(|(_, before)| last - before >= enough);
    match start {
        Some((start, before)) if end > *start => {
            let per_second = (last - before) as f64 / (end - start);
            Verdict::Rate { per_second, stretch }
        }
        _ => Verdict::Unclear,
    }
}
