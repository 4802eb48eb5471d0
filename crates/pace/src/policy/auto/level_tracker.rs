//! A cap beside a rate: it rejects at one level and never lets in above it.

use std::collections::VecDeque;

/// Rejections that must agree, and admissions that must not contradict them.
const MIN_REJECTIONS: usize = 8;
const ADMISSION_RANGE: std::ops::Range<usize> = 40..200;
const MAX_ADMISSIONS: usize = 400;
/// Share of admissions at or above the level that may be due to answers on their way back.
const TOLERANCE: f64 = 0.02;

#[derive(Debug, Default)]
pub(super) struct LevelTracker {
    /// How many had been admitted when it was rejected, and at which level.
    rejections: VecDeque<(u64, u32)>,
    admissions: VecDeque<u32>,
    count: u64,
    cap: Option<ConcurrencyCap>,
}

/// So many in flight at most.
#[derive(Debug, Clone, Copy)]
struct ConcurrencyCap {
    /// Where it was found.
    least: u32,
    width: u32,
    /// Admissions right below it since it was last touched.
    clean: u32,
}

/// Admissions right below the cap after which it is lifted a little.
const LIFT_AFTER: u32 = 100;

impl LevelTracker {
    /// Whether one more may be in flight.
    pub(super) fn allows(&self, level: u32) -> bool {
        self.cap.is_none_or(|cap| level < cap.width)
    }

    pub(super) fn on_admitted(&mut self, level: u32) {
        if let Some(cap) = &mut self.cap
            && level + 1 >= cap.width
        {
            cap.clean += 1;
            if cap.clean > LIFT_AFTER {
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
            *cap = ConcurrencyCap { width: level.max(cap.least), clean: 0, ..*cap };
        }
        if let Some(width) = self.detect_cap(level) {
            self.cap = Some(ConcurrencyCap { least: width.max(1), width: width.max(1), clean: 0 });
        }
    }

    /// The cap, if there seems to be one.
    fn detect_cap(&mut self, level: u32) -> Option<u32> {
        self.rejections.push_back((self.count, level));
        if self.rejections.len() > MIN_REJECTIONS {
            self.rejections.pop_front();
        }
        let (since, _) = *self.rejections.front()?;
        let least = self.rejections.iter().map(|(_, level)| *level).min()?;
        let most = self.rejections.iter().map(|(_, level)| *level).max()?;
        let recent = usize::try_from(self.count - since).unwrap_or(usize::MAX);
        let recent = recent.min(self.admissions.len());
        let is_enough =
            self.rejections.len() == MIN_REJECTIONS && ADMISSION_RANGE.contains(&recent);
        if !is_enough || f64::from(most) > 1.1 * f64::from(least) + 3.0 {
            return None;
        }
        let above = self.admissions.iter().rev().take(recent).filter(|level| **level >= least);
        (above.count() as f64 <= TOLERANCE * recent as f64).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_at_one_level_and_never_above_are_a_cap() {
        let mut levels = LevelTracker::default();
        assert!(levels.allows(1000));
        for _ in 0..MIN_REJECTIONS {
            (0..10).for_each(|level| levels.on_admitted(20 + level));
            levels.on_rejected(30);
        }
        assert!(levels.allows(29));
        assert!(!levels.allows(30));
        (0..=LIFT_AFTER).for_each(|_| levels.on_admitted(29));
        assert!(levels.allows(30), "lifted a little after a while");
    }

    #[test]
    fn rejections_at_levels_that_were_open_are_no_cap() {
        let mut levels = LevelTracker::default();
        for round in 0..20 {
            (0..10).for_each(|level| levels.on_admitted(20 + level));
            levels.on_rejected(22 + round % 5);
        }
        assert!(levels.allows(1000));
    }
}
