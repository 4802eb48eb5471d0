//! Waits that a provider announces with `Retry-After`.
//!
//! An announced block stops the whole pool. Unless the user forbids it (`retry_after = "strict"`),
//! single requests, the canaries, test whether the block is longer than necessary: some providers
//! always announce a minute.

use super::RetryAfter;

/// Shares of a block after which canaries are sent. Once all have confirmed blocks, only every
/// `RETEST_EVERY`-th block is tested.
const CANARY_SHARES: [f64; 4] = [0.05, 0.2, 0.45, 0.75];
const RETEST_EVERY: u32 = 5;
/// Bounds of the delay of the first canary: a slot or a fast bucket is free after a second.
const FIRST_CANARY_S: (f64, f64) = (0.3, 1.0);
/// Rejections in a row, and their seconds, after which announced blocks are no longer ignored.
const MAX_IGNORED: (u32, f64) = (8, 2.0);
/// Minimum time between two canaries.
const CANARY_INTERVAL_S: f64 = 5.0;

#[derive(Debug)]
pub(super) struct AnnouncedBlock {
    mode: RetryAfter,
    until: f64,
    since: f64,
    blocks: u32,
    /// Number of canaries that confirmed a block.
    confirmed: usize,
    /// Whether a canary has shown that blocks are longer than necessary.
    is_ignored: bool,
    /// Rejections in a row of which the announced blocks were ignored, and the time of the first.
    ignored: u32,
    ignored_since: f64,
    canary: Canary,
    /// When the last canary was sent.
    canary_sent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Canary {
    None,
    Due(f64),
    InFlight { number: u64 },
}

impl AnnouncedBlock {
    pub(super) fn new(mode: RetryAfter) -> AnnouncedBlock {
        AnnouncedBlock {
            mode,
            until: 0.0,
            since: 0.0,
            blocks: 0,
            confirmed: 0,
            is_ignored: false,
            ignored: 0,
            ignored_since: 0.0,
            canary: Canary::None,
            canary_sent: f64::NEG_INFINITY,
        }
    }

    /// Handles a rejection with a hint. Returns its cost: the seconds in which nothing is sent.
    pub(super) fn on_announced(&mut self, now: f64, hint: f64) -> f64 {
        if self.is_ignored {
            if self.ignored == 0 {
                self.ignored_since = now;
            }
            self.ignored += 1;
            if self.ignored < MAX_IGNORED.0 || now - self.ignored_since < MAX_IGNORED.1 {
                return 0.0;
            }
            // Nothing was admitted meanwhile: this block is needed.
            self.is_ignored = false;
            self.confirmed = 0;
        }
        let is_new = now >= self.until;
        self.until = self.until.max(now + hint);
        if is_new {
            self.since = now;
            self.blocks += 1;
            if self.blocks.is_multiple_of(RETEST_EVERY) {
                self.confirmed = self.confirmed.min(1);
            }
            self.plan_canary(now);
        }
        self.next_at(now) - now
    }

    fn plan_canary(&mut self, now: f64) {
        let length = self.until - self.since;
        let delay = CANARY_SHARES.get(self.confirmed).map(|share| match self.confirmed {
            0 => (share * length).clamp(FIRST_CANARY_S.0, FIRST_CANARY_S.1),
            _ => share * length,
        });
        let at = delay
            .map(|delay| (self.since + delay).max(self.canary_sent + CANARY_INTERVAL_S).max(now));
        self.canary = match at {
            Some(at) if self.mode == RetryAfter::Test && at < self.until => Canary::Due(at),
            _ => Canary::None,
        };
    }

    pub(super) fn mode(&self) -> RetryAfter {
        self.mode
    }

    /// Returns whether a canary has shown that blocks are longer than necessary.
    pub(super) fn is_ignored(&self) -> bool {
        self.is_ignored
    }

    /// Returns the end of the block.
    pub(super) fn until(&self) -> f64 {
        self.until
    }

    /// Returns when blocks allow the next request.
    pub(super) fn next_at(&self, now: f64) -> f64 {
        match self.canary {
            _ if now >= self.until => now,
            Canary::Due(at) => at.max(now).min(self.until),
            _ => self.until,
        }
    }

    pub(super) fn on_sent(&mut self, now: f64, number: u64) {
        if now < self.until
            && let Canary::Due(_) = self.canary
        {
            self.canary = Canary::InFlight { number };
            self.canary_sent = now;
        }
    }

    /// Handles an admission. Returns whether it was that of a canary that shows the block to be
    /// longer than necessary.
    pub(super) fn on_admitted(&mut self, now: f64, number: u64) -> bool {
        self.ignored = 0;
        if self.canary != (Canary::InFlight { number }) {
            return false;
        }
        self.canary = Canary::None;
        let is_needless = now < self.until;
        if is_needless {
            self.is_ignored = true;
            self.until = now;
        }
        is_needless
    }

    /// Handles a rejection. Returns whether it was that of a canary, which says nothing about limits.
    pub(super) fn on_rejected(&mut self, now: f64, number: u64) -> bool {
        if self.canary != (Canary::InFlight { number }) {
            return false;
        }
        self.confirmed += 1;
        self.plan_canary(now);
        true
    }

    /// Returns whether a block has ended since the last call.
    pub(super) fn take_ended(&mut self, now: f64) -> bool {
        let has_ended = self.since > 0.0 && now >= self.until;
        if has_ended {
            self.since = 0.0;
        }
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_block_sends_nothing_before_its_end() {
        let mut block = AnnouncedBlock::new(RetryAfter::Strict);
        assert_eq!(block.on_announced(10.0, 60.0), 60.0);
        assert_eq!(block.next_at(11.0), 70.0);
        assert!(!block.take_ended(69.0));
        assert_eq!(block.next_at(70.0), 70.0);
        assert!(block.take_ended(70.0));
        assert!(!block.take_ended(71.0), "returned once");
    }

    #[test]
    fn longest_announcement_counts() {
        let mut block = AnnouncedBlock::new(RetryAfter::Strict);
        block.on_announced(0.0, 10.0);
        block.on_announced(1.0, 2.0);
        assert_eq!(block.next_at(1.0), 10.0);
        block.on_announced(2.0, 20.0);
        assert_eq!(block.next_at(2.0), 22.0);
    }

    #[test]
    fn admitted_canary_disables_blocks() {
        let mut block = AnnouncedBlock::new(RetryAfter::Test);
        block.on_announced(0.0, 60.0);
        let at = block.next_at(0.0);
        assert!((0.3..12.0).contains(&at), "{at}");
        block.on_sent(at, 7);
        assert_eq!(block.next_at(at), 60.0, "one at a time");
        block.on_admitted(at + 0.1, 7);
        assert_eq!(block.next_at(at + 0.1), at + 0.1);
        assert_eq!(block.on_announced(20.0, 60.0), 0.0);
        assert_eq!(block.next_at(20.0), 20.0);
    }

    #[test]
    fn rejections_in_a_row_enable_blocks_again() {
        let mut block = AnnouncedBlock::new(RetryAfter::Test);
        block.on_announced(0.0, 60.0);
        let at = block.next_at(0.0);
        block.on_sent(at, 7);
        block.on_admitted(at + 0.1, 7);
        for second in 0..7 {
            assert_eq!(block.on_announced(20.0 + f64::from(second), 30.0), 0.0);
        }
        block.on_admitted(27.0, 8);
        for _ in 0..20 {
            assert_eq!(block.on_announced(30.0, 30.0), 0.0, "a burst of rejections");
        }
        assert!(block.on_announced(32.0, 30.0) > 0.0);
        assert_eq!(block.until(), 62.0);
    }

    #[test]
    fn four_rejected_canaries_make_blocks_strict() {
        let mut block = AnnouncedBlock::new(RetryAfter::Test);
        block.on_announced(0.0, 60.0);
        let mut last = f64::NEG_INFINITY;
        for number in 0..4 {
            let at = block.next_at(last.max(0.0) + 0.1);
            assert!(at >= last + CANARY_INTERVAL_S && at < 60.0, "{at}");
            block.on_sent(at, number);
            assert!(block.on_rejected(at + 0.1, number));
            last = at;
        }
        assert!(!block.on_rejected(last + 0.2, 9), "not a canary");
        assert_eq!(block.next_at(last + 0.2), 60.0);
        block.on_announced(61.0, 60.0);
        assert_eq!(block.next_at(61.0), 121.0);
    }

    #[test]
    fn short_blocks_share_a_canary_every_five_seconds() {
        let mut block = AnnouncedBlock::new(RetryAfter::Test);
        let mut sent = Vec::new();
        for number in 0..10_u32 {
            let now = f64::from(number) * 2.0;
            block.on_announced(now, 2.0);
            let at = block.next_at(now);
            if at < now + 2.0 {
                block.on_sent(at, number.into());
                assert!(block.on_rejected(at + 0.1, number.into()));
                sent.push(at);
            }
        }
        assert!(sent.len() > 1, "{sent:?}");
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= CANARY_INTERVAL_S), "{sent:?}");
    }
}
