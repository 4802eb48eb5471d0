//! A model proposes combinations. They are tried, not believed.
//!
//! The model is asked before the search begins, so that the selector itself is as pure as any other:
//! the same proposals and the same observations give the same choice.

use super::error::OptionsError;
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, Step};
use crate::space::Space;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A candidate for each role, by name.
pub type Proposal = BTreeMap<String, String>;

/// What a model is told before it proposes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Briefing {
    /// The roles.
    pub roles: Vec<RoleBriefing>,
    /// Some of the datapoints.
    pub preview: Vec<String>,
    /// What is wanted, in words.
    pub objective: String,
    /// Proposals that are tried, at most.
    pub most: usize,
}

/// What a model is told of a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleBriefing {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Who could fill it, and for what price.
    pub candidates: Vec<(String, Option<f64>)>,
}

impl Briefing {
    /// Names alone; descriptions, prices and a preview can be added.
    pub fn new(space: &Space) -> Briefing {
        let role = |role: &crate::Role| RoleBriefing {
            name: role.name.clone(),
            description: None,
            candidates: role.candidates.iter().map(|name| (name.clone(), None)).collect(),
        };
        Briefing {
            roles: space.roles().iter().map(role).collect(),
            preview: Vec::new(),
            objective: "the best score, then the lowest latency and cost".to_owned(),
            most: 8,
        }
    }
}

/// Who proposes.
#[async_trait::async_trait]
pub trait Propose: Send + Sync {
    /// Combinations that are worth trying, the most promising first; or why there are none.
    async fn propose(&self, briefing: &Briefing) -> Result<Vec<Proposal>, String>;
}

/// Tries what was proposed on all datapoints.
#[derive(Debug, Clone)]
pub struct LmProposal {
    plan: Plan,
    proposed: Vec<usize>,
    notes: Vec<String>,
}

impl LmProposal {
    /// Asks for proposals.
    ///
    /// # Errors
    ///
    /// None were made, or none can be tried.
    pub async fn ask(
        space: &Space,
        propose: &dyn Propose,
        briefing: &Briefing,
        seed: u64,
    ) -> Result<LmProposal, OptionsError> {
        let mut proposals = propose.propose(briefing).await.map_err(OptionsError::NotProposed)?;
        proposals.truncate(briefing.most.max(1));
        LmProposal::new(space, &proposals, seed)
    }

    /// Takes proposals that were made before.
    ///
    /// # Errors
    ///
    /// None of them can be tried.
    pub fn new(
        space: &Space,
        proposals: &[Proposal],
        seed: u64,
    ) -> Result<LmProposal, OptionsError> {
        let (mut proposed, mut notes) = (Vec::new(), Vec::new());
        for (number, proposal) in (1..).zip(proposals) {
            match find(space, proposal) {
                Ok(combo) if proposed.contains(&combo) => {
                    notes.push(format!("proposal {number} is one of those before"));
                }
                Ok(combo) => proposed.push(combo),
                Err(why) => notes.push(format!("proposal {number} {why}")),
            }
        }
        if proposed.is_empty() {
            return Err(OptionsError::NoProposals { notes });
        }
        Ok(LmProposal { plan: Plan::new(space, seed), proposed, notes })
    }

    /// What was wrong with proposals that are not tried.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The number of the combination that a proposal names.
fn find(space: &Space, proposal: &Proposal) -> Result<usize, String> {
    let roles = space.roles();
    if let Some(role) = proposal.keys().find(|name| !roles.iter().any(|role| role.name == **name)) {
        return Err(format!("is for a role `{role}`, which there is not"));
    }
    let mut members = Vec::with_capacity(roles.len());
    for role in roles {
        let Some(wanted) = proposal.get(&role.name) else {
            return Err(format!("has nobody for the role `{}`", role.name));
        };
        match role.candidates.iter().position(|candidate| candidate == wanted) {
            Some(member) => members.push(member as u32),
            None => return Err(format!("has `{wanted}`, who is no `{}`", role.name)),
        }
    }
    let combo = (0..space.combos()).find(|combo| space.members(*combo) == members);
    combo.ok_or_else(|| "is not among the combinations to choose from".to_owned())
}

impl Selector for LmProposal {
    fn name(&self) -> &'static str {
        "lm_proposal"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let round = self.plan.whole(evidence, self.proposed.iter().copied());
        if !round.cells.is_empty() {
            return Step::Evaluate(round);
        }
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        let reason = format!("{} proposals were tried{notes}", self.proposed.len());
        Plan::choose(evidence, self.proposed.iter().copied(), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use crate::testing::{chosen, grid, run};

    fn proposal(members: &[(&str, &str)]) -> Proposal {
        members.iter().map(|(role, name)| ((*role).to_owned(), (*name).to_owned())).collect()
    }

    struct Fixed(Result<Vec<Proposal>, String>);

    #[async_trait::async_trait]
    impl Propose for Fixed {
        async fn propose(&self, briefing: &Briefing) -> Result<Vec<Proposal>, String> {
            assert_eq!(briefing.roles[1].candidates.len(), 3);
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn proposals_are_tried_and_the_best_of_them_wins() {
        let space = grid(&[2, 3], 4);
        let proposals = vec![
            proposal(&[("r0", "m0"), ("r1", "m1")]),
            proposal(&[("r0", "m1"), ("r1", "m9")]),
            proposal(&[("r0", "m1")]),
            proposal(&[("r0", "m1"), ("r1", "m0"), ("r2", "m0")]),
            proposal(&[("r0", "m1"), ("r1", "m0")]),
            proposal(&[("r0", "m0"), ("r1", "m1")]),
            proposal(&[("r0", "m1"), ("r1", "m2")]),
        ];
        // One more than is tried at most, which would be the best.
        let briefing = Briefing { most: 6, ..Briefing::new(&space) };
        let fixed = Fixed(Ok(proposals));
        let mut selector = LmProposal::ask(&space, &fixed, &briefing, 1).await.unwrap();
        assert_eq!(
            selector.notes(),
            [
                "proposal 2 has `m9`, who is no `r1`",
                "proposal 3 has nobody for the role `r1`",
                "proposal 4 is for a role `r2`, which there is not",
                "proposal 6 is one of those before",
            ]
        );
        // What was proposed first is not the best.
        let (rounds, end, evidence) =
            run(&space, &mut selector, |cell: Cell| Some(cell.combo as f64 / 10.0));
        assert_eq!((rounds.len(), evidence.cells(), chosen(&end)), (1, 8, 3));
    }

    #[tokio::test]
    async fn without_proposals_there_is_no_search() {
        let space = grid(&[2, 3], 4);
        let briefing = Briefing::new(&space);
        let ask = async |answer| LmProposal::ask(&space, &Fixed(answer), &briefing, 1).await;
        let error = ask(Err("no key".to_owned())).await.unwrap_err();
        assert_eq!(error.to_string(), "no proposals were made: no key");
        let error = ask(Ok(vec![proposal(&[("r0", "m0")])])).await.unwrap_err();
        let message = "lm_proposal has nothing to try; proposal 1 has nobody for the role `r1`";
        assert_eq!(error.to_string(), message);
    }
}
