//! What a provider announces about waiting, and whether to believe it.
//!
//! An announced block stops the whole pool. Where the user allows it (`retry_after = "test"`), a
//! single request finds out whether the block is longer than need be: some providers always say a
//! minute.

use super::RetryAfter;

/// When the first canary of a pool goes out, and which share of the block the next ones wait.
const FIRST_CANARY_S: f64 = 0.3;
const SECOND_CANARY: f64 = 0.2;
const LATER_CANARY: f64 = 0.35;
/// Of the blocks of a pool that was right twice, one in so many is tested again.
const RETEST: u32 = 5;

#[derive(Debug)]
pub(super) struct Block {
    mode: RetryAfter,
    until: f64,
    since: f64,
    /// Blocks so far, and how often a canary has found them right.
    blocks: u32,
    confirmed: u32,
    is_ignored: bool,
    canary: Canary,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Canary {
    None,
    Due(f64),
    Out { number: u64 },
}

impl Block {
    pub(super) fn new(mode: RetryAfter) -> Block {
        Block {
            mode,
            until: 0.0,
            since: 0.0,
            blocks: 0,
            confirmed: 0,
            is_ignored: false,
            canary: Canary::None,
        }
    }

    /// A rejection asks for so much time. Returns what it costs: the time nothing goes out.
    pub(super) fn announced(&mut self, now: f64, hint: f64) -> f64 {
        if self.is_ignored {
            return 0.0;
        }
        if now >= self.until {
            self.blocks += 1;
            self.since = now;
            let at = match (self.mode, self.confirmed) {
                (RetryAfter::Strict, _) => None,
                (_, 0) => Some(FIRST_CANARY_S.max(SECOND_CANARY * hint / 4.0)),
                (_, 1) => Some(SECOND_CANARY * hint),
                _ => self.blocks.is_multiple_of(RETEST).then_some(LATER_CANARY * hint),
            };
            self.canary =
                at.filter(|at| *at < 0.7 * hint).map_or(Canary::None, |at| Canary::Due(now + at));
        }
        self.until = self.until.max(now + hint);
        self.next_at(now) - now
    }

    /// Until when nothing goes out.
    pub(super) fn until(&self) -> f64 {
        self.until
    }

    /// When the next request may go out, as far as blocks are concerned.
    pub(super) fn next_at(&self, now: f64) -> f64 {
        match self.canary {
            _ if now >= self.until => now,
            Canary::Due(at) => at.max(now).min(self.until),
            _ => self.until,
        }
    }

    pub(super) fn sent(&mut self, now: f64, number: u64) {
        if now < self.until
            && let Canary::Due(_) = self.canary
        {
            self.canary = Canary::Out { number };
        }
    }

    /// A request was let in.
    pub(super) fn admitted(&mut self, now: f64, number: u64) {
        if self.canary == (Canary::Out { number }) {
            self.canary = Canary::None;
            if now < self.until {
                self.is_ignored = true;
                self.until = now;
            }
        }
    }

    /// A request was rejected. Returns whether it was a canary, which says nothing about limits.
    pub(super) fn bounced(&mut self, now: f64, number: u64) -> bool {
        if self.canary != (Canary::Out { number }) {
            return false;
        }
        self.confirmed += 1;
        // Once more, a good deal later.
        let left = self.until - self.since;
        self.canary = if self.confirmed < 2 && now < self.since + SECOND_CANARY * left {
            Canary::Due(self.since + SECOND_CANARY * left)
        } else {
            Canary::None
        };
        true
    }

    /// How long the block was that has just ended, once.
    pub(super) fn take_ended(&mut self, now: f64) -> Option<f64> {
        if self.since > 0.0 && now >= self.until {
            let length = self.until - self.since;
            self.since = 0.0;
            return (length > 0.0).then_some(length);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictly_nothing_goes_out_before_the_end() {
        let mut block = Block::new(RetryAfter::Strict);
        assert_eq!(block.announced(10.0, 60.0), 60.0);
        assert_eq!(block.next_at(11.0), 70.0);
        assert_eq!(block.take_ended(69.0), None);
        assert_eq!(block.next_at(70.0), 70.0);
        assert_eq!(block.take_ended(70.0), Some(60.0));
        assert_eq!(block.take_ended(71.0), None, "told once");
    }

    #[test]
    fn the_longest_of_several_announcements_counts() {
        let mut block = Block::new(RetryAfter::Strict);
        block.announced(0.0, 10.0);
        block.announced(1.0, 2.0);
        assert_eq!(block.next_at(1.0), 10.0);
        block.announced(2.0, 20.0);
        assert_eq!(block.next_at(2.0), 22.0);
    }

    #[test]
    fn a_canary_that_is_let_in_ends_the_trust() {
        let mut block = Block::new(RetryAfter::Test);
        block.announced(0.0, 60.0);
        let at = block.next_at(0.0);
        assert!((0.3..12.0).contains(&at), "{at}");
        block.sent(at, 7);
        assert_eq!(block.next_at(at), 60.0, "one at a time");
        block.admitted(at + 0.1, 7);
        assert_eq!(block.next_at(at + 0.1), at + 0.1);
        assert_eq!(block.announced(20.0, 60.0), 0.0);
        assert_eq!(block.next_at(20.0), 20.0);
    }

    #[test]
    fn two_canaries_that_bounce_make_it_strict() {
        let mut block = Block::new(RetryAfter::Test);
        block.announced(0.0, 60.0);
        let first = block.next_at(0.0);
        block.sent(first, 1);
        assert!(block.bounced(first + 0.1, 1));
        let second = block.next_at(first + 0.1);
        assert!(second > first && second < 60.0, "{second}");
        block.sent(second, 2);
        assert!(block.bounced(second + 0.1, 2));
        assert!(!block.bounced(second + 0.2, 3), "not a canary");
        assert_eq!(block.next_at(second + 0.2), 60.0);
        block.announced(61.0, 60.0);
        assert_eq!(block.next_at(61.0), 121.0);
    }
}
