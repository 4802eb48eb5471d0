//! The hypothesis of random rejections: a share of requests is rejected irrespective of load.
//!
//! Such a share calls for retries, not for a lower rate. Experiments tell it from a limit. During
//! the ramp, the requests right after the first rejection are sent as fast as before: a limit that was
//! just reached rejects most of them. If many are rejected later in the ramp, a burst follows a
//! rejection at once: a limit that was just exhausted rejects most of it. Under the hypothesis of a
//! bucket, trials of a faster pace confirm it (`pace_trial`).

use super::ledger::{SendPurpose, SentRequest};
use std::collections::VecDeque;

/// Requests after the first rejection that decide about it, and the rejections that refute the
/// hypothesis.
const TRIAL: u64 = 10;
const TRIAL_REJECTIONS: u32 = 2;
/// Recent requests, and the rejections among them that only a limit explains.
const RECENT: usize = 16;
const RECENT_REJECTIONS: usize = 8;
/// Latest requests, and the rejections among them that may be random.
const LATEST: usize = 6;
const LATEST_REJECTIONS: usize = 2;
/// Requests over which the share is measured while they are paced.
const PACED: usize = 32;
/// Requests over which the share is measured, and the largest share believed without a burst.
const HISTORY: usize = 128;
const MAX_UNTESTED_SHARE: f64 = 0.12;
/// Share of rejections above which no burst is sent.
const MAX_BURST_SHARE: f64 = 0.25;
/// Size of a burst, and the share of it that only random rejections admit.
const MIN_BURST: f64 = 4.0;
const MAX_BURST: f64 = 32.0;
const ADMITTED_SHARE: f64 = 0.75;

/// The state of the hypothesis.
#[derive(Debug)]
pub(super) struct RandomRejections {
    stage: NoiseStage,
    /// Numbers of the latest rejected requests, in ascending order. Requests without an outcome count
    /// as admitted: rejections arrive first.
    rejected: VecDeque<u64>,
    /// The largest share that counts as random.
    max_share: f64,
    burst: Option<Burst>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum NoiseStage {
    Unknown,
    /// The requests after this one decide.
    Trial {
        first: u64,
        decided: u64,
        rejected: u32,
    },
    /// The trial has accepted it, which holds for the ramp.
    Accepted,
    /// A burst has confirmed it.
    Confirmed,
    Refuted,
}

/// Requests sent at once after a rejection.
#[derive(Debug, Clone, Copy)]
struct Burst {
    size: f64,
    sent: f64,
    admitted: f64,
    rejected: f64,
}

/// How a rejection relates to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectionCause {
    /// It is random, or the next requests will tell.
    Random,
    /// It is due to a limit.
    Limit,
}

impl RandomRejections {
    pub(super) fn new() -> RandomRejections {
        RandomRejections {
            stage: NoiseStage::Unknown,
            rejected: VecDeque::new(),
            max_share: MAX_UNTESTED_SHARE,
            burst: None,
        }
    }

    /// Starts over with the ramp.
    pub(super) fn on_resumed(&mut self) {
        self.burst = None;
        if let NoiseStage::Trial { .. } = self.stage {
            self.stage = NoiseStage::Unknown;
        }
    }

    /// Returns whether a trial or a burst waits for the outcome of its requests.
    pub(super) fn is_waiting(&self, sends: u64) -> bool {
        let is_sent = self.burst.is_some_and(|burst| burst.sent >= burst.size);
        is_sent || matches!(self.stage, NoiseStage::Trial { first, .. } if sends > first + TRIAL)
    }

    /// Returns whether the next request belongs to a burst.
    pub(super) fn is_bursting(&self) -> bool {
        self.burst.is_some_and(|burst| burst.sent < burst.size)
    }

    pub(super) fn on_sent(&mut self, purpose: SendPurpose) {
        if purpose == SendPurpose::Burst
            && let Some(burst) = &mut self.burst
        {
            burst.sent += 1.0;
        }
    }

    /// Handles an admission.
    pub(super) fn on_admitted(&mut self, sent: SentRequest) {
        self.count_trial(sent.number);
        if sent.purpose == SendPurpose::Burst
            && let Some(burst) = &mut self.burst
        {
            burst.admitted += 1.0;
            self.end_burst();
        }
    }

    /// Handles a rejection during the ramp; `later` requests were sent after it and admitted,
    /// `meanwhile` is as for [`RandomRejections::plan_burst`].
    pub(super) fn on_ramp_rejected(
        &mut self,
        sent: SentRequest,
        later: u64,
        meanwhile: f64,
    ) -> RejectionCause {
        self.record(sent.number);
        if sent.purpose == SendPurpose::Burst {
            return self.on_burst_rejected();
        }
        match &mut self.stage {
            NoiseStage::Unknown => {
                self.stage = if later >= TRIAL {
                    NoiseStage::Accepted
                } else {
                    NoiseStage::Trial { first: sent.number, decided: later, rejected: 0 }
                };
            }
            NoiseStage::Trial { first, decided, rejected } => {
                let is_later = sent.number > *first;
                *decided += u64::from(is_later);
                *rejected += u32::from(is_later);
                if *rejected >= TRIAL_REJECTIONS {
                    self.stage = NoiseStage::Refuted;
                    return RejectionCause::Limit;
                }
            }
            NoiseStage::Accepted | NoiseStage::Confirmed => {
                if self.count(RECENT) >= RECENT_REJECTIONS {
                    self.leave_ramp();
                    return RejectionCause::Limit;
                }
                let is_frequent = self.count(HISTORY) as f64 > self.max_share * HISTORY as f64;
                if is_frequent && self.count(RECENT) <= RECENT_REJECTIONS / 2 {
                    self.plan_burst(meanwhile);
                }
            }
            NoiseStage::Refuted => return RejectionCause::Limit,
        }
        RejectionCause::Random
    }

    fn leave_ramp(&mut self) {
        if self.stage == NoiseStage::Accepted {
            // Rejections long before the limit was reached were random.
            let earlier = self.count(HISTORY) - self.count(2 * RECENT);
            self.stage = if earlier >= 3 { NoiseStage::Confirmed } else { NoiseStage::Refuted };
        }
        self.rejected.clear();
    }

    /// Handles a rejection under another hypothesis.
    pub(super) fn on_rejected(&mut self, sent: SentRequest) -> RejectionCause {
        self.record(sent.number);
        if sent.purpose == SendPurpose::Burst {
            self.on_burst_rejected();
            return RejectionCause::Random;
        }
        let is_isolated = self.count(LATEST) <= LATEST_REJECTIONS;
        let is_rare = self.count(PACED) as f64 <= self.max_share * PACED as f64;
        if self.stage == NoiseStage::Confirmed && is_isolated && is_rare {
            return RejectionCause::Random;
        }
        RejectionCause::Limit
    }

    /// Handles the result of an experiment: requests are rejected even far below the limit.
    pub(super) fn confirm(&mut self) {
        self.stage = NoiseStage::Confirmed;
        self.max_share = (2.0 * self.share()).clamp(MAX_UNTESTED_SHARE, 0.5);
    }

    fn on_burst_rejected(&mut self) -> RejectionCause {
        let Some(burst) = &mut self.burst else { return RejectionCause::Random };
        burst.rejected += 1.0;
        self.end_burst().unwrap_or(RejectionCause::Random)
    }

    /// Starts a burst after a rejection if one is due; `meanwhile` is the number of requests that the
    /// suspected limit may have allowed since the rejected one was sent.
    fn plan_burst(&mut self, meanwhile: f64) {
        // Many rejections, or several in a row, are due to a limit.
        let is_isolated = self.count(2) <= 1;
        let is_rare = self.share() <= MAX_BURST_SHARE;
        if !is_isolated || !is_rare || self.burst.is_some() {
            return;
        }
        let size = (MIN_BURST + 2.0 * meanwhile).min(MAX_BURST).round();
        self.burst = Some(Burst { size, sent: 0.0, admitted: 0.0, rejected: 0.0 });
    }

    /// Handles a request that was neither admitted nor rejected.
    pub(super) fn on_discarded(&mut self, sent: SentRequest) {
        if sent.purpose == SendPurpose::Burst {
            self.burst = None;
        }
        if !sent.is_admitted {
            self.count_trial(sent.number);
        }
    }

    /// Counts a request of the trial whose outcome is known.
    fn count_trial(&mut self, number: u64) {
        if let NoiseStage::Trial { first, decided, .. } = &mut self.stage
            && number > *first
        {
            *decided += 1;
            if *decided >= TRIAL {
                self.stage = NoiseStage::Accepted;
            }
        }
    }

    /// Ends a burst whose outcome is known. Returns the cause of rejections that it shows.
    fn end_burst(&mut self) -> Option<RejectionCause> {
        let burst = self.burst?;
        if burst.rejected > (1.0 - ADMITTED_SHARE) * burst.size {
            self.burst = None;
            self.stage = NoiseStage::Refuted;
            return Some(RejectionCause::Limit);
        }
        if burst.admitted + burst.rejected < burst.size {
            return None;
        }
        self.burst = None;
        self.confirm();
        Some(RejectionCause::Random)
    }

    fn record(&mut self, number: u64) {
        let index = self.rejected.partition_point(|other| *other < number);
        self.rejected.insert(index, number);
        if self.rejected.len() > HISTORY {
            self.rejected.pop_front();
        }
    }

    /// Returns whether so few requests are rejected that it may be random.
    pub(super) fn is_rare(&self) -> bool {
        self.share() <= MAX_UNTESTED_SHARE
    }

    /// Returns the share of rejections.
    fn share(&self) -> f64 {
        let sent = self.rejected.back().map_or(HISTORY, |newest| *newest as usize + 1);
        self.count(HISTORY) as f64 / sent.min(HISTORY) as f64
    }

    /// Returns the number of rejections among the latest requests.
    fn count(&self, requests: usize) -> usize {
        let Some(newest) = self.rejected.back() else { return 0 };
        let is_latest = |number: &&u64| **number + requests as u64 > *newest;
        self.rejected.iter().rev().take_while(is_latest).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: u64, purpose: SendPurpose) -> SentRequest {
        SentRequest { number, ..SentRequest::example(0.0, purpose) }
    }

    fn reject(noise: &mut RandomRejections, number: u64) -> RejectionCause {
        noise.on_ramp_rejected(sent(number, SendPurpose::Work), 0, 0.0)
    }

    fn admit(noise: &mut RandomRejections, number: u64) {
        noise.on_admitted(sent(number, SendPurpose::Work));
    }

    /// Returns the hypothesis after a trial in which all requests were admitted.
    fn accepted() -> RandomRejections {
        let mut noise = RandomRejections::new();
        assert_eq!(reject(&mut noise, 20), RejectionCause::Random);
        (21..21 + TRIAL).for_each(|number| admit(&mut noise, number));
        assert!(!noise.is_waiting(100));
        noise
    }

    /// Sends a burst of which that many are rejected.
    fn burst(noise: &mut RandomRejections, first: u64, rejections: u64) {
        let mut sends = 0;
        while noise.is_bursting() {
            noise.on_sent(SendPurpose::Burst);
            sends += 1;
        }
        assert_eq!(sends, 4);
        for number in 0..sends {
            let request = sent(first + number, SendPurpose::Burst);
            if number < rejections {
                noise.on_rejected(request);
            } else {
                noise.on_admitted(request);
            }
        }
    }

    #[test]
    fn limit_rejects_the_requests_after_the_first_rejection() {
        let mut noise = RandomRejections::new();
        assert_eq!(reject(&mut noise, 20), RejectionCause::Random);
        assert!(!noise.is_waiting(20 + TRIAL));
        assert!(noise.is_waiting(21 + TRIAL), "no more before the outcome");
        assert_eq!(reject(&mut noise, 21), RejectionCause::Random);
        assert_eq!(reject(&mut noise, 22), RejectionCause::Limit);
    }

    #[test]
    fn rare_rejections_during_the_ramp_are_random() {
        let mut noise = accepted();
        for number in 2..50 {
            assert_eq!(reject(&mut noise, 20 * number), RejectionCause::Random);
        }
        let causes: Vec<_> = (1000..1010).map(|number| reject(&mut noise, number)).collect();
        assert!(causes.contains(&RejectionCause::Limit), "a series of rejections is a limit");
    }

    #[test]
    fn requests_admitted_before_the_rejection_arrives_count() {
        let mut noise = RandomRejections::new();
        let request = sent(20, SendPurpose::Work);
        assert_eq!(noise.on_ramp_rejected(request, TRIAL, 0.0), RejectionCause::Random);
        assert!(!noise.is_waiting(100));
    }

    #[test]
    fn burst_after_a_rejection_tells_random_ones_from_a_limit() {
        for (rejections, is_random) in [(0, true), (1, true), (2, false), (4, false)] {
            let mut noise = RandomRejections::new();
            let cause = noise.on_rejected(sent(100, SendPurpose::Work));
            assert_eq!(cause, RejectionCause::Limit);
            noise.plan_burst(0.0);
            burst(&mut noise, 101, rejections);
            let cause = noise.on_rejected(sent(150, SendPurpose::Work));
            assert_eq!(cause == RejectionCause::Random, is_random, "{rejections}");
        }
    }

    #[test]
    fn no_burst_follows_several_rejections_in_a_row() {
        let mut noise = RandomRejections::new();
        for number in [100, 101] {
            noise.on_rejected(sent(number, SendPurpose::Work));
        }
        noise.plan_burst(0.0);
        assert!(!noise.is_bursting());
    }

    #[test]
    fn discarded_request_ends_a_burst_and_counts_for_the_trial() {
        let mut noise = RandomRejections::new();
        noise.on_rejected(sent(100, SendPurpose::Work));
        noise.plan_burst(0.0);
        noise.on_discarded(sent(101, SendPurpose::Burst));
        assert!(!noise.is_bursting());
        let mut noise = RandomRejections::new();
        reject(&mut noise, 20);
        (21..21 + TRIAL).for_each(|number| noise.on_discarded(sent(number, SendPurpose::Work)));
        assert!(!noise.is_waiting(100));
    }

    #[test]
    fn confirmed_rejections_stay_random_while_they_are_rare() {
        let mut noise = RandomRejections::new();
        let reject = |noise: &mut RandomRejections, number| {
            noise.on_rejected(sent(number, SendPurpose::Work))
        };
        assert_eq!(reject(&mut noise, 100), RejectionCause::Limit, "not confirmed");
        noise.confirm();
        for number in [130, 140, 150] {
            assert_eq!(reject(&mut noise, number), RejectionCause::Random, "{number}");
        }
        assert!(noise.is_rare());
        // More than an eighth of the latest 32.
        assert_eq!(reject(&mut noise, 157), RejectionCause::Limit);
        (160..180).for_each(|number| {
            reject(&mut noise, number);
        });
        assert!(!noise.is_rare());
    }
}
