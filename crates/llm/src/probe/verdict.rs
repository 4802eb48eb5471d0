//! What do the rejections depend on: how many are in flight, or how many per time?
//!
//! A cap rejects when, and only when, so many are in flight: every rejection falls into a moment
//! as crowded as the most crowded one ever accepted. A rate rejects at other times too, as soon as
//! the first burst is over. How often it accepts while it is asked too often is the rate itself,
//! however hard it is asked.

use super::sample::{Sample, quantile, usual_latency};

/// Accepted requests that a rate is measured over: one more or less is then 3 %.
const ENOUGH: usize = 30;
/// The same when there will not be more.
const BARELY_ENOUGH: usize = 3;
/// How much more time without asking there may be at one end of a measurement than at the other,
/// as a share of it.
const UNEVEN: f64 = 0.1;
/// Requests that there may be too many or too few, because some were held up on their way.
const DOUBTFUL: f64 = 0.1;

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// Not enough to say.
    Unclear,
    /// So many per time, but too few were accepted so far to say how many.
    SomeRate,
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
    let is_lonely = |crowds: &[f64]| {
        let lonely = crowds.iter().filter(|crowd| **crowd < most - slack).count();
        lonely as f64 > 0.3 * crowds.len() as f64
    };
    let since_first = answered.iter().filter(|s| s.sent > first.sent).count() as f64;
    if is_rate || late.len() >= 3 && (is_lonely(&late) || is_lonely(&crowds)) {
        return rate(&seen, is_final);
    }
    if late.len() >= 3 && since_first >= most + 3.0 || is_final && late.is_empty() {
        let usual = quantile(crowds.into_iter(), 0.5).unwrap_or(most);
        return Verdict::Cap(usual.min(most).max(1.0));
    }
    if is_final { rate(&seen, true) } else { Verdict::Unclear }
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

/// When a batch began.
struct Start {
    /// Between the last request that was rejected and the first that was accepted.
    at: f64,
    /// How much time lies between these two.
    gap: f64,
    /// Requests accepted before it.
    before: usize,
}

/// Accepted requests over time, from the beginning of one batch to the beginning of another. A
/// batch begins with the first accepted request after a rejection, when a bucket has just enough
/// for one, and a window has just opened.
fn rate(seen: &[Sample], is_final: bool) -> Verdict {
    let (starts, stretch) = starts(seen);
    let Some(end) = starts.last() else { return Verdict::SomeRate };
    // More time without asking at one end than at the other is more that has piled up there.
    let counts = |start: &&Start, enough: usize| {
        let is_even = (start.gap - end.gap).abs() <= UNEVEN * (end.at - start.at);
        end.before - start.before >= enough && is_even
    };
    // The latest stretch that is long enough: at the beginning the asking may have been too slow.
    let latest = starts.iter().rev().find(|start| counts(start, ENOUGH));
    let longest = || starts.iter().find(|start| counts(start, BARELY_ENOUGH));
    let start = if is_final { latest.or_else(longest) } else { latest };
    match start {
        Some(start) if end.at > start.at => {
            let mean = (end.before - start.before) as f64 / (end.at - start.at);
            let since: Vec<Sample> = seen.iter().copied().filter(|s| s.sent >= start.at).collect();
            let one_by_one = || one_by_one(&since).unwrap_or(mean);
            let per_second = if piles_up(&since, mean) { mean } else { one_by_one() };
            Verdict::Rate { per_second, stretch }
        }
        _ => Verdict::SomeRate,
    }
}

/// The beginnings of batches, and the longest time for which everything was rejected.
fn starts(seen: &[Sample]) -> (Vec<Start>, f64) {
    let mut starts: Vec<Start> = Vec::new();
    let mut bounces: Vec<&Sample> = seen.iter().filter(|s| s.is_rejected()).collect();
    bounces.sort_by(|one, other| one.ended.total_cmp(&other.ended));
    let mut bounces = bounces.into_iter().peekable();
    let mut longest: f64 = 0.0;
    for (before, sample) in seen.iter().filter(|s| s.is_answered()).enumerate() {
        // Those that went out before the rejection was back belong to the old batch.
        let mut shut: Option<(f64, f64)> = None;
        while let Some(bounce) = bounces.next_if(|bounce| bounce.ended <= sample.sent) {
            let since = shut.map_or(bounce.ended, |(since, _)| since);
            shut = Some((since, bounce.sent));
        }
        if let Some((since, last)) = shut {
            let gap = sample.sent - last;
            starts.push(Start { at: sample.sent - gap / 2.0, gap, before });
            longest = longest.max(sample.sent - since);
        }
    }
    (starts, longest)
}

/// Whether what was not used is kept for later: then, at that rate, there is always room for what
/// is accepted, and never for what is rejected.
fn piles_up(seen: &[Sample], per_second: f64) -> bool {
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut used = 0.0;
    for sample in seen {
        let needed = used + 1.0 - per_second * sample.sent;
        if sample.is_answered() {
            least = least.max(needed);
            used += 1.0;
        } else if sample.is_rejected() {
            most = most.min(needed);
        }
    }
    least <= most + DOUBTFUL
}

/// The rate of a bucket that holds one request: what is accepted late is lost there, so that the
/// mean is too low. A request is then accepted one interval or more after the one before, and what
/// is rejected in between comes after less than an interval. `None` where that is contradicted, or
/// too vague.
fn one_by_one(seen: &[Sample]) -> Option<f64> {
    let (mut too_early, mut late_enough) = (Vec::new(), Vec::new());
    let mut last: Option<f64> = None;
    let mut rejected = None;
    for sample in seen {
        let after = last.map(|last| sample.sent - last);
        if sample.is_answered() {
            too_early.extend(rejected.take().filter(|_| after.is_some()));
            late_enough.extend(after);
            last = Some(sample.sent);
        } else if sample.is_rejected() {
            rejected = after;
        }
    }
    // Some may be held up on their way, so that the extremes tell nothing.
    let longest = quantile(too_early.into_iter(), 0.95)?;
    let shortest = quantile(late_enough.into_iter(), 0.05)?;
    let is_consistent = longest < shortest && shortest < 1.2 * longest;
    is_consistent.then(|| 2.0 / (longest + shortest))
}
