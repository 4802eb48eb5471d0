//! BranchNames of branches in reasons.

use crate::outcome::ParallelLoopOutcome;

/// BranchNames of a race's branches, by index.
pub(crate) struct BranchNames(Vec<String>);

impl BranchNames {
    /// Uses the configs' segments; the loop number is appended where several share one.
    pub(crate) fn of(outcomes: &[ParallelLoopOutcome]) -> BranchNames {
        let segment = |outcome: &ParallelLoopOutcome| outcome.loop_id.segment().to_owned();
        let segments: Vec<String> = outcomes.iter().map(segment).collect();
        let is_shared = |name: &String| segments.iter().filter(|other| *other == name).count() > 1;
        let name = |(outcome, name): (&ParallelLoopOutcome, &String)| match is_shared(name) {
            true => format!("{name}.{}", outcome.loop_id.number()),
            false => name.clone(),
        };
        BranchNames(outcomes.iter().zip(&segments).map(name).collect())
    }

    /// Returns the name of a branch.
    pub(crate) fn of_branch(&self, index: usize) -> String {
        self.0.get(index).cloned().unwrap_or_else(|| format!("branch {}", index + 1))
    }

    /// Lists several names: `a, b and c`.
    pub(crate) fn list(&self, branches: &[usize], conjunction: &str) -> String {
        let names: Vec<String> = branches.iter().map(|index| self.of_branch(*index)).collect();
        list(&names, conjunction)
    }
}

/// Lists names: `a, b and c`.
pub(crate) fn list(names: &[String], conjunction: &str) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} {conjunction} {last}", others.join(", ")),
    }
}
