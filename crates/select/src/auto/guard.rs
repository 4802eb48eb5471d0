//! Bets that must be won before a search stops.
//!
//! The model decides which cells to evaluate, but its confidence is only as good as its assumptions. On recorded data, the
//! best combination is sometimes unlucky in its first cells, looks far worse than it is, and is not evaluated again because
//! it is expensive. So the leader of a finished search has won a bet on the paired differences against every rival that the
//! model does not practically exclude. A bet assumes nothing but the range of the scores and the random order of the
//! datapoints. Its error probability holds for one fixed leader; that the leader may change is not accounted for.

use super::data::ModelData;
use super::rivals::Rivals;
use crate::bet::Bet;

/// Rivals with a smaller probability of being better need no bet. With 1e-5, find rates are the same, and matrices of many
/// similar combinations cost up to 10 % more.
const NEGLIGIBLE: f64 = 1e-4;

/// Cells by which a rival advances for its bet, relative to its depth. A smaller step costs up to 3 % less, but takes more
/// rounds.
const STEP: f64 = 0.1;
const MIN_STEP: usize = 2;

/// State of the bets that no rival is better than the leader by more than ε.
pub(super) struct Guard {
    leader: usize,
    total: usize,
    rivals: Vec<GuardedRival>,
}

/// A rival with cells that it or the leader has not been evaluated on.
struct GuardedRival {
    arm: usize,
    /// Whether the model is sure enough that it is not better.
    is_excluded: bool,
    bet: Bet,
}

impl Guard {
    /// Replays the bets; `alpha` is the error probability of each.
    pub(super) fn new(rivals: &Rivals<'_>, data: &ModelData, alpha: f64) -> Guard {
        let (leader, total) = (rivals.leader, data.total);
        let is_complete = |arm: usize| data.depth(arm) == total;
        let is_open = |&arm: &usize| arm != leader && !(is_complete(arm) && is_complete(leader));
        let guarded = |arm: usize| GuardedRival {
            arm,
            is_excluded: rivals.better_with_leader_noise(arm) <= NEGLIGIBLE,
            bet: replay_bet(rivals, data, arm, alpha),
        };
        let rivals = (0..data.rows.len()).filter(is_open).map(guarded).collect();
        Guard { leader, total, rivals }
    }

    /// Whether it is impossible that a rival is better by more than ε.
    pub(super) fn is_certain(&self) -> bool {
        self.rivals.iter().all(|rival| rival.bet.error_probability() <= 0.0)
    }

    /// Confidence of the bets in the leader. It applies at any time, also if not all bets are won.
    pub(super) fn confidence(&self) -> f64 {
        let bets = self.rivals.iter().filter(|rival| !rival.is_excluded);
        1.0 - bets.map(|rival| rival.bet.error_probability()).fold(0.0, f64::max)
    }

    /// Returns the combinations to advance with their target depths: of each pair whose bet is not won, the one with fewer
    /// cells. There is none once all bets are won.
    pub(super) fn targets(&self, data: &ModelData) -> Vec<(usize, usize)> {
        let next = |depth: usize| {
            let step = (STEP * depth as f64).ceil() as usize;
            (depth + step.max(MIN_STEP)).min(self.total)
        };
        let lead = data.depth(self.leader);
        let mut targets = Vec::new();
        let mut does_leader_advance = false;
        for rival in self.rivals.iter().filter(|rival| !rival.is_excluded && !rival.bet.is_won()) {
            let depth = data.depth(rival.arm);
            if depth < lead {
                targets.push((rival.arm, next(depth).min(lead)));
            } else {
                does_leader_advance = true;
                if depth == lead {
                    targets.push((rival.arm, next(depth)));
                }
            }
        }
        if does_leader_advance {
            targets.push((self.leader, next(lead)));
        }
        targets
    }
}

/// Replays the bet against "the rival is better by more than ε" on the datapoints that both have.
fn replay_bet(rivals: &Rivals<'_>, data: &ModelData, arm: usize, alpha: f64) -> Bet {
    let mut bet = Bet::new(data.total, -alpha.max(1e-12).ln());
    for (rival, leader) in data.rows[arm].iter().zip(&data.rows[rivals.leader]) {
        bet.observe(((rival - leader - rivals.epsilon + 1.0) / 2.0).clamp(0.0, 1.0));
    }
    bet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::posterior::{Posterior, tests::small};
    use crate::auto::rivals::Rival;
    use crate::auto::tuning::AutoTuning;

    const TOTAL: usize = 40;
    const ALPHA: f64 = 0.05;

    /// The guard of combination 2 in these rows; each rival is better with about this probability.
    fn guard(rows: [Vec<f64>; 4], probability: f64) -> (Guard, ModelData) {
        let (small, design, scales) = small();
        let posterior = Posterior::new(&small, &design, &scales).unwrap();
        let mut rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        assert_eq!(rivals.leader, 2);
        // Half a standard deviation, or far away.
        let gap = if probability > 0.1 { -0.05 } else { -0.9 };
        rivals.rivals = vec![Rival { gap, variance: 0.01, ..Rival::default() }; 4];
        let data = ModelData::of(TOTAL, rows.to_vec(), vec![1.0; 4]);
        (Guard::new(&rivals, &data, ALPHA), data)
    }

    /// A row with this score throughout.
    fn row(depth: usize, score: f64) -> Vec<f64> {
        vec![score; depth]
    }

    #[test]
    fn few_bad_cells_do_not_clear_a_rival() {
        let rows = [row(4, 0.0), row(20, 0.0), row(20, 1.0), row(20, 1.0)];
        let (guard, data) = guard(rows, 0.3);
        // The first rival needs more cells than its four; the second is worse; the last is as good so far.
        assert_eq!(guard.targets(&data), [(0, 6), (3, 22), (2, 22)]);
        // Little evidence against the last rival, which may be better.
        assert!(guard.confidence() < 0.3 && !guard.is_certain(), "{}", guard.confidence());
    }

    #[test]
    fn won_bets_permit_the_stop() {
        let rows = [row(15, 0.0), row(15, 0.0), row(20, 1.0), row(15, 0.0)];
        let (guard, data) = guard(rows, 0.3);
        assert_eq!(guard.targets(&data), []);
        assert!((0.95..1.0).contains(&guard.confidence()), "{}", guard.confidence());
        assert!(!guard.is_certain());
    }

    #[test]
    fn shallow_leader_catches_up_with_its_rivals() {
        let rows = [row(30, 0.5), row(15, 0.0), row(20, 0.5), row(19, 0.5)];
        let (guard, data) = guard(rows, 0.3);
        assert_eq!(guard.targets(&data), [(3, 20), (2, 22)]);
    }

    #[test]
    fn rivals_that_the_model_excludes_need_no_bet() {
        let (guard, data) = guard([row(4, 0.0), row(4, 0.0), row(20, 1.0), row(4, 0.0)], 0.0);
        assert_eq!(guard.targets(&data), []);
        assert!(guard.confidence() >= 1.0 && !guard.is_certain());
    }

    #[test]
    fn complete_rows_need_no_bet() {
        let complete = || row(TOTAL, 0.5);
        let (complete_guard, data) = guard([complete(), complete(), complete(), complete()], 0.3);
        assert_eq!(complete_guard.targets(&data), []);
        assert!(complete_guard.is_certain());
        let (guard, data) = guard([row(39, 0.5), complete(), complete(), complete()], 0.3);
        assert_eq!(guard.targets(&data), [(0, TOTAL)]);
        assert!(!guard.is_certain());
    }
}
