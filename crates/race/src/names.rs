//! What branches are called in reasons.

use crate::outcome::ParallelLoopOutcome;

/// Names of the branches of a race, by place.
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Their configs' names; of those that share one, with the loop's number.
    pub(crate) fn of(outcomes: &[ParallelLoopOutcome]) -> Names {
        let segment = |outcome: &ParallelLoopOutcome| outcome.loop_id.segment().to_owned();
        let segments: Vec<String> = outcomes.iter().map(segment).collect();
        let is_shared = |name: &String| segments.iter().filter(|other| *other == name).count() > 1;
        let name = |(outcome, name): (&ParallelLoopOutcome, &String)| match is_shared(name) {
            true => format!("{name}.{}", outcome.loop_id.number()),
            false => name.clone(),
        };
        Names(outcomes.iter().zip(&segments).map(name).collect())
    }

    /// The name of the branch at a place.
    pub(crate) fn of_place(&self, place: usize) -> String {
        self.0.get(place).cloned().unwrap_or_else(|| format!("branch {}", place + 1))
    }

    /// Several names: `a, b and c`.
    pub(crate) fn list(&self, places: &[usize], joining: &str) -> String {
        let names: Vec<String> = places.iter().map(|place| self.of_place(*place)).collect();
        list(&names, joining)
    }
}

/// `a, b and c`.
pub(crate) fn list(names: &[String], joining: &str) -> String {
    match names {
        [] => "nobody".to_owned(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} {joining} {last}", others.join(", ")),
    }
}
