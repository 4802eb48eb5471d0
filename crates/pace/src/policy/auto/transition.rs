//! How outcomes of requests change the hypothesis about the limit.

use super::bucket::{BucketHypothesis, InitialBurst, Rejection};
use super::cap::{CapHypothesis, CapTest};
use super::ledger::{MAX_RECENT, SendPurpose, SentRequest};
use super::noise::RejectionCause;
use super::pace_trial::TrialResult;
use super::ramp::Ramp;
use super::sliding::SlidingHypothesis;
use super::window::WindowHypothesis;
use super::window_search::SearchResult;
use super::{AutoMode, AutoPolicy};

/// Number of requests on which the first rate of a bucket must be based.
const MIN_MEASURED: f64 = 2.0;
/// Minimum length of a sliding window in seconds.
const MIN_SLIDING_S: f64 = 1.0;
/// Maximum number of requests of a sliding window: the send times of more are not kept.
const MAX_SLIDING: f64 = MAX_RECENT as f64;

impl AutoPolicy {
    /// Handles an admission.
    pub(super) fn on_admitted(&mut self, now: f64, sent: SentRequest) {
        self.throughput.on_admitted(now, self.ledger.accepted());
        let was_needless = self.block.on_admitted(now, sent.number);
        if let AutoMode::Cap(cap) = &self.mode
            && was_needless
            && !cap.is_confirmed()
        {
            // The rejection that started the block was not even the first sign of a limit.
            self.mode = AutoMode::Ramp(Ramp::resume(now, sent.level));
            self.noise.on_resumed();
            self.knee.on_resumed();
            return;
        }
        self.noise.on_admitted(sent);
        if self.count_outcome(now, sent.number, false) {
            return;
        }
        match &mut self.mode {
            AutoMode::Ramp(_) => {}
            AutoMode::Cap(cap) => {
                self.levels.on_admitted(sent.level);
                if cap.on_admitted(now, sent) == CapTest::Refuted {
                    self.mode = AutoMode::Bucket(self.first_bucket(now));
                }
            }
            AutoMode::Bucket(bucket) => {
                self.levels.on_admitted(sent.level);
                let patience = self.ledger.patience();
                let rate = bucket.known_rate();
                bucket.on_admitted(now, patience);
                match self.search.on_admitted(sent, now, rate, patience) {
                    None => {}
                    Some(SearchResult::Window(found)) => {
                        self.mode = AutoMode::Window(WindowHypothesis::new(found));
                    }
                    Some(SearchResult::KnownRate(rate)) => {
                        self.marks.clear();
                        bucket.restore(now, rate);
                    }
                }
            }
            AutoMode::Window(window) => {
                if window.on_admitted(now, sent) {
                    self.mode = AutoMode::Bucket(BucketHypothesis::new(now, window.rate()));
                }
            }
            AutoMode::Sliding(sliding) => sliding.on_admitted(sent),
        }
    }

    /// Counts an outcome for the protection of a bucket against overload and for its trials of a faster
    /// pace; returns whether the request belongs to a trial.
    fn count_outcome(&mut self, now: f64, number: u64, is_rejected: bool) -> bool {
        let AutoMode::Bucket(bucket) = &mut self.mode else { return false };
        if self.search.next_at().is_some() {
            return false;
        }
        let result = bucket.on_decided(now, number, is_rejected, &mut self.marks);
        if result == Some(TrialResult::Faster) {
            self.noise.confirm();
        }
        result.is_some()
    }

    /// Returns a bucket after the cap was refuted. Its rate is at least the one since the first
    /// rejection.
    fn first_bucket(&self, now: f64) -> BucketHypothesis {
        let since_first = self.start.map_or(1.0, |start| {
            let seconds = now - self.first_sent.unwrap_or(now) - start.seconds;
            (self.ledger.accepted() - start.accepted).max(1.0) / seconds.max(1e-3)
        });
        match self.marks.estimate() {
            Some(estimate) if estimate.count >= MIN_MEASURED => {
                BucketHypothesis::new(now, estimate.rate.max(since_first))
            }
            estimate => {
                let measured = estimate.map_or(0.0, |estimate| estimate.rate);
                BucketHypothesis::at_least(now, measured.max(since_first), self.ledger.accepted())
            }
        }
    }

    /// Handles a rejection that headers do not explain; `hint` is the announced wait.
    pub(super) fn on_rejected(&mut self, now: f64, sent: SentRequest, hint: Option<f64>) {
        self.ledger.reject(&sent, now - sent.at);
        let cause = match self.mode {
            AutoMode::Ramp(_) if hint.is_none() || self.block.is_ignored() => {
                let later = self.ledger.admitted_after(sent.number);
                let rate = f64::from(sent.level) / self.latency.max(1e-3);
                self.noise.on_ramp_rejected(sent, later, rate * (now - sent.at))
            }
            _ => self.noise.on_rejected(sent),
        };
        if self.count_outcome(now, sent.number, true) {
            self.block.on_rejected(now, sent.number);
            if let Some(hint) = hint {
                self.block.on_announced(now, hint);
            }
            return;
        }
        if cause == RejectionCause::Random {
            self.discard(sent);
            return;
        }
        let has_wait = hint.is_some() && !self.block.is_ignored();
        if matches!(self.mode, AutoMode::Bucket(_)) && !has_wait && self.search.is_isolated(sent) {
            self.discard(sent);
            return;
        }
        self.marks.add(sent.at, sent.accepted);
        let accepted = sent.accepted;
        let seconds = sent.at - self.first_sent.unwrap_or(sent.at);
        let start = *self.start.get_or_insert(InitialBurst { accepted, seconds });
        let since_block = accepted - self.block_end.1;
        self.min_burst = self.min_burst.min(since_block);
        let was_canary = self.block.on_rejected(now, sent.number);
        let cost = hint.map_or(0.0, |hint| self.block.on_announced(now, hint));
        if was_canary {
            self.discard(sent);
            return;
        }
        let is_news = sent.at >= self.reacted_at;
        if is_news {
            self.reacted_at = now;
        }
        match &mut self.mode {
            AutoMode::Ramp(_) => {
                self.mode = AutoMode::Cap(CapHypothesis::new(sent.level, now, cost));
            }
            AutoMode::Cap(cap) => {
                if cap.on_rejected(now, sent, is_news, cost, self.latency) == CapTest::Refuted {
                    self.mode = AutoMode::Bucket(self.first_bucket(now));
                }
            }
            AutoMode::Bucket(bucket) => {
                if !is_news {
                    return;
                }
                self.search.on_rejected(sent);
                let rejection = Rejection {
                    start,
                    block: cost,
                    accepted,
                    since_block,
                    seconds: sent.at - self.block_end.0,
                    min_burst: self.min_burst,
                    is_rare: self.noise.is_rare(),
                };
                bucket.on_rejected(now, &mut self.marks, rejection);
                self.levels.on_rejected(sent.level);
            }
            AutoMode::Window(window) => {
                if window.on_rejected(sent) {
                    self.mode = if window.length() >= MIN_SLIDING_S && window.count() <= MAX_SLIDING
                    {
                        AutoMode::Sliding(SlidingHypothesis::new(window.count(), window.length()))
                    } else {
                        AutoMode::Bucket(BucketHypothesis::new(now, window.rate()))
                    };
                }
            }
            AutoMode::Sliding(sliding) if is_news || sent.purpose != SendPurpose::Work => {
                if sliding.on_rejected(now, sent) {
                    self.mode = AutoMode::Bucket(BucketHypothesis::new(now, sliding.rate()));
                }
            }
            AutoMode::Sliding(_) => {}
        }
    }

    /// Handles a request that was neither admitted nor rejected, or whose rejection has another cause.
    pub(super) fn discard(&mut self, sent: SentRequest) {
        if sent.is_admitted {
            return;
        }
        match &mut self.mode {
            AutoMode::Cap(cap) => cap.on_ended(sent.purpose),
            AutoMode::Window(window) => window.on_discarded(sent),
            AutoMode::Sliding(sliding) => sliding.on_discarded(sent),
            AutoMode::Bucket(bucket) => {
                self.search.on_discarded();
                bucket.on_discarded(sent.number);
            }
            AutoMode::Ramp(_) => {}
        }
    }
}
