//! The rule that is to be beaten, as it was published: drop what is more than a standard error apart.

use bakeoff_select::{Cell, Choice, Evidence, Round, Selector, Space, Step};

/// Elimination by one standard error, in rounds over the dataset in order.
#[derive(Debug)]
pub struct ArmElimination {
    active: Vec<usize>,
    datapoints: usize,
    done: usize,
    batch: usize,
}

impl ArmElimination {
    /// With everything still in.
    pub fn new(space: &Space) -> ArmElimination {
        let datapoints = space.datapoints();
        let batch = (datapoints / 10).max(1);
        ArmElimination { active: (0..space.combos()).collect(), datapoints, done: 0, batch }
    }
}

impl Selector for ArmElimination {
    fn name(&self) -> &'static str {
        "arm_elimination"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let figures: Vec<_> = self.active.iter().map(|&combo| evidence.figures(combo)).collect();
        if self.done > 0 {
            let least = figures.iter().map(|of| of.mean - of.standard_error());
            let least = least.fold(f64::NEG_INFINITY, f64::max);
            let keep = self.active.iter().zip(&figures);
            let keep = keep.filter(|(_, of)| of.mean + of.standard_error() >= least);
            self.active = keep.map(|(combo, _)| *combo).collect();
        }
        if self.active.len() == 1 || self.done == self.datapoints {
            let mean = |combo: usize| evidence.figures(combo).mean;
            let best = self.active.iter().copied();
            let best =
                best.reduce(|best, combo| if mean(combo) > mean(best) { combo } else { best });
            let reason = "one is left, or all is seen".to_owned();
            return Step::Choose(Choice { combo: best.unwrap_or(0), confidence: None, reason });
        }
        let to = (self.done + self.batch).min(self.datapoints);
        let cells = self
            .active
            .iter()
            .flat_map(|&combo| (self.done..to).map(move |datapoint| Cell { combo, datapoint }));
        let round = Round { cells: cells.collect(), batch: to - self.done };
        self.done = to;
        self.batch *= 2;
        Step::Evaluate(round)
    }
}
