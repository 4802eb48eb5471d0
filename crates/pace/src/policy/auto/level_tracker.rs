//! Detection of a concurrency cap in addition to a rate: rejections at one level, no admissions above.

use std::collections::VecDeque;

/// Number of rejections that must agree, and range of admissions that must not contradict them.
const MIN_REJECTIONS: usize = 8;
const ADMISSION_RANGE: std::ops::Range<usize> = 40..200;
const MAX_ADMISSIONS: usize = 400;
/// Share of admissions at or above the level that answers in transit may explain.
const TOLERANCE: f64 = 0.02;

/// The levels of recent admissions and rejections.
#[derive(Debug, Default)]
pub(super) struct LevelTracker {
    /// For each rejection, the number of admissions before it and its level.
    rejections: VecDeque<(u64, u32)>,
    admissions: VecDeque<u32>,
    count: u64,
    cap: Option<ConcurrencyCap>,
}

/// A cap on requests in flight.
#[derive(Debug, Clone, Copy)]
struct ConcurrencyCap {
    /// The level at which it was detected.
    detected: u32,
    width: u32,
    /// Admissions right below it since it last changed.
    clean: u32,
}

/// Admissions right below the cap after which it is raised slightly.
const RAISE_AFTER: u32 = 100;

impl LevelTracker {
    /// Returns whether the cap allows another request at that level.
    pub(super) fn allows(&self, level: u32) -> bool {
        self.cap.is_none_or(|cap| level < cap.width)
    }

    pub(super) fn on_admitted(&mut self, level: u32) {
        if let Some(cap) = &mut self.cap
            && level + 1 >= cap.width
        {
            cap.clean += 1;
            if cap.clean > RAISE_AFTER {
                *cap =
                    ConcurrencyCap { width: cap.width + (cap.width / 20).max(1), clean: 0, ..*cap };
            }
        }
        self.count += 1;
        self.admissions.push_back(level);
        if self.admissions.len() > MAX_ADMISSIONS {
            self.admissions.pop_front();
        }
    }

    pub(super) fn on_rejected(&mut self, level: u32) {
        if let Some(cap) = &mut self.cap
            && level + 1 >= cap.width
        {
            *cap = ConcurrencyCap { width: level.max(cap.detected), clean: 0, ..*cap };
        }
        if let Some(width) = self.detect_cap(level) {
            self.cap =
                Some(ConcurrencyCap { detected: width.max(1), width: width.max(1), clean: 0 });
        }
    }

    /// Records a rejection; returns the cap if there seems to be one.
    fn detect_cap(&mut self, level: u32) -> Option<u32> {
        self.rejections.push_back((self.count, level));
        if self.rejections.len() > MIN_REJECTIONS {
            self.rejections.pop_front();
        }
        let (since, _) = *self.rejections.front()?;
        let min = self.rejections.iter().map(|(_, level)| *level).min()?;
        let max = self.rejections.iter().map(|(_, level)| *level).max()?;
        let recent = usize::try_from(self.count - since).unwrap_or(usize::MAX);
        let recent = recent.min(self.admissions.len());
        let is_enough =
            self.rejections.len() == MIN_REJECTIONS && ADMISSION_RANGE.contains(&recent);
        if !is_enough || f64::from(max) > 1.1 * f64::from(min) + 3.0 {
            return None;
        }
        let above = self.admissions.iter().rev().take(recent).filter(|level| **level >= min);
        (above.count() as f64 <= TOLERANCE * recent as f64).then_some(min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_at_one_level_are_a_cap() {
        let mut levels = LevelTracker::default();
        assert!(levels.allows(1000));
        for _ in 0..MIN_REJECTIONS {
            (0..10).for_each(|level| levels.on_admitted(20 + level));
            levels.on_rejected(30);
        }
        assert!(levels.allows(29));
        assert!(!levels.allows(30));
        (0..=RAISE_AFTER).for_each(|_| levels.on_admitted(29));
        assert!(levels.allows(30), "raised after enough admissions");
    }

    #[test]
    fn rejections_below_admissions_are_no_cap() {
        let mut levels = LevelTracker::default();
        for round in 0..20 {
            (0..10).for_each(|level| levels.on_admitted(20 + level));
            levels.on_rejected(22 + round % 5);
        }
        assert!(levels.allows(1000));
    }
}
