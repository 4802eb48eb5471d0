//! A cap beside a rate: it rejects at one level and never lets in above it.

use std::collections::VecDeque;

/// Rejections that must agree, and admissions that must not contradict them.
const REJECTIONS: usize = 8;
const ADMISSIONS: std::ops::Range<usize> = 40..200;
const MOST_ADMISSIONS: usize = 400;
/// Share of admissions at or above the level that may be due to answers on their way back.
const TOLERANCE: f64 = 0.02;

#[derive(Debug, Default)]
pub(super) struct Levels {
    /// How many had been admitted when it was rejected, and at which level.
    rejected: VecDeque<(u64, u32)>,
    admitted: VecDeque<u32>,
    count: u64,
    lid: Option<Lid>,
}

/// So many in flight at most.
#[derive(Debug, Clone, Copy)]
struct Lid {
    /// Where it was found.
    least: u32,
    width: u32,
    /// Admissions right below it since it was last touched.
    clean: u32,
}

/// Admissions right below the lid after which it is lifted a little.
const LIFT_AFTER: u32 = 100;

impl Levels {
    /// Whether one more may be in flight.
    pub(super) fn allows(&self, level: u32) -> bool {
        self.lid.is_none_or(|lid| level < lid.width)
    }

    pub(super) fn admitted(&mut self, level: u32) {
        if let Some(lid) = &mut self.lid
            && level + 1 >= lid.width
        {
            lid.clean += 1;
            if lid.clean > LIFT_AFTER {
                *lid = Lid { width: lid.width + (lid.width / 20).max(1), clean: 0, ..*lid };
            }
        }
        self.count += 1;
        self.admitted.push_back(level);
        if self.admitted.len() > MOST_ADMISSIONS {
            self.admitted.pop_front();
        }
    }

    pub(super) fn bounced(&mut self, level: u32) {
        if let Some(lid) = &mut self.lid
            && level + 1 >= lid.width
        {
            *lid = Lid { width: level.max(lid.least), clean: 0, ..*lid };
        }
        if let Some(width) = self.cap(level) {
            self.lid = Some(Lid { least: width.max(1), width: width.max(1), clean: 0 });
        }
    }

    /// The cap, if there seems to be one.
    fn cap(&mut self, level: u32) -> Option<u32> {
        self.rejected.push_back((self.count, level));
        if self.rejected.len() > REJECTIONS {
            self.rejected.pop_front();
        }
        let (since, _) = *self.rejected.front()?;
        let least = self.rejected.iter().map(|(_, level)| *level).min()?;
        let most = self.rejected.iter().map(|(_, level)| *level).max()?;
        let recent = usize::try_from(self.count - since).unwrap_or(usize::MAX);
        let recent = recent.min(self.admitted.len());
        let is_enough = self.rejected.len() == REJECTIONS && ADMISSIONS.contains(&recent);
        if !is_enough || f64::from(most) > 1.1 * f64::from(least) + 3.0 {
            return None;
        }
        let above = self.admitted.iter().rev().take(recent).filter(|level| **level >= least);
        (above.count() as f64 <= TOLERANCE * recent as f64).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_at_one_level_and_never_above_are_a_cap() {
        let mut levels = Levels::default();
        assert!(levels.allows(1000));
        for _ in 0..REJECTIONS {
            (0..10).for_each(|level| levels.admitted(20 + level));
            levels.bounced(30);
        }
        assert!(levels.allows(29));
        assert!(!levels.allows(30));
        (0..=LIFT_AFTER).for_each(|_| levels.admitted(29));
        assert!(levels.allows(30), "lifted a little after a while");
    }

    #[test]
    fn rejections_at_levels_that_were_open_are_no_cap() {
        let mut levels = Levels::default();
        for round in 0..20 {
            (0..10).for_each(|level| levels.admitted(20 + level));
            levels.bounced(22 + round % 5);
        }
        assert!(levels.allows(1000));
    }
}
