//! Combinations proposed by a model, evaluated like any other.
//!
//! The model is called before the search starts, so the selector itself is pure: the same proposals
//! and the same observations give the same choice.

use super::error::{OptionsError, listed};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;
use bakeoff_core::NanoDollars;
use std::collections::BTreeMap;

/// A candidate for each role, by name.
pub type Proposal = BTreeMap<String, String>;

/// Input for the model that proposes combinations.
#[derive(Debug, Clone, PartialEq)]
pub struct Briefing {
    /// The roles.
    pub roles: Vec<RoleBriefing>,
    /// Some of the datapoints.
    pub preview: Vec<String>,
    /// The objective, in words.
    pub objective: String,
    /// Maximum number of proposals to evaluate.
    pub max_proposals: usize,
}

/// Description of a role in a [`Briefing`].
#[derive(Debug, Clone, PartialEq)]
pub struct RoleBriefing {
    /// Name of the role.
    pub name: String,
    /// Purpose of the role.
    pub description: Option<String>,
    /// Candidates with the cost of a typical call, if known.
    pub candidates: Vec<(String, Option<NanoDollars>)>,
}

impl Briefing {
    /// Creates a briefing with names only; add descriptions, prices and a preview as needed.
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
            max_proposals: 8,
        }
    }
}

/// Proposes combinations.
#[async_trait::async_trait]
pub trait Propose: Send + Sync {
    /// Returns combinations worth evaluating, the most promising first.
    async fn propose(&self, briefing: &Briefing) -> Result<Vec<Proposal>, ProposeError>;
}

/// The proposing model gave no proposals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProposeError {
    message: String,
}

impl ProposeError {
    /// Creates an error from the text of its cause.
    pub fn new(message: impl Into<String>) -> ProposeError {
        ProposeError { message: message.into() }
    }
}

/// Why a proposal is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("proposal {number}: {problem}")]
pub struct ProposalIssue {
    /// Number of the proposal, from 1.
    pub number: usize,
    /// The problem.
    pub problem: ProposalProblem,
}

/// Problem of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProposalProblem {
    /// A role that the space does not have.
    #[error("unknown role `{0}`")]
    UnknownRole(String),
    /// A role without a candidate.
    #[error("no candidate for role `{0}`")]
    MissingRole(String),
    /// A candidate that the role does not have.
    #[error("`{candidate}` is not a candidate for role `{role}`")]
    UnknownCandidate {
        /// Name of the role.
        role: String,
        /// Name of the candidate.
        candidate: String,
    },
    /// A combination that the space does not have.
    #[error("combination is not part of the search space")]
    NotInSpace,
    /// The same combination as an earlier proposal.
    #[error("duplicate of an earlier proposal")]
    Duplicate,
}

/// Evaluates proposed combinations on all datapoints.
#[derive(Debug, Clone)]
pub struct LmProposal {
    plan: Plan,
    proposed: Vec<usize>,
    issues: Vec<ProposalIssue>,
}

impl LmProposal {
    /// Requests proposals from a model.
    ///
    /// # Errors
    ///
    /// The model gave no proposals, or none that can be evaluated.
    pub async fn request(
        space: &Space,
        propose: &dyn Propose,
        briefing: &Briefing,
        seed: u64,
    ) -> Result<LmProposal, OptionsError> {
        let mut proposals = propose.propose(briefing).await.map_err(OptionsError::NotProposed)?;
        proposals.truncate(briefing.max_proposals.max(1));
        LmProposal::new(space, &proposals, seed)
    }

    /// Creates a selector for existing proposals.
    ///
    /// # Errors
    ///
    /// None of them can be evaluated.
    pub fn new(
        space: &Space,
        proposals: &[Proposal],
        seed: u64,
    ) -> Result<LmProposal, OptionsError> {
        let (mut proposed, mut issues) = (Vec::new(), Vec::new());
        for (number, proposal) in (1..).zip(proposals) {
            match find_combo(space, proposal) {
                Ok(combo) if proposed.contains(&combo) => {
                    issues.push(ProposalIssue { number, problem: ProposalProblem::Duplicate });
                }
                Ok(combo) => proposed.push(combo),
                Err(problem) => issues.push(ProposalIssue { number, problem }),
            }
        }
        if proposed.is_empty() {
            return Err(OptionsError::NoProposals { issues });
        }
        Ok(LmProposal { plan: Plan::new(space, seed), proposed, issues })
    }

    /// Returns why some proposals are not evaluated.
    pub fn issues(&self) -> &[ProposalIssue] {
        &self.issues
    }
}

/// Returns the number of the proposed combination.
fn find_combo(space: &Space, proposal: &Proposal) -> Result<usize, ProposalProblem> {
    let roles = space.roles();
    if let Some(role) = proposal.keys().find(|name| !roles.iter().any(|role| role.name == **name)) {
        return Err(ProposalProblem::UnknownRole(role.clone()));
    }
    let mut members = Vec::with_capacity(roles.len());
    for role in roles {
        let Some(candidate) = proposal.get(&role.name) else {
            return Err(ProposalProblem::MissingRole(role.name.clone()));
        };
        match role.candidates.iter().position(|name| name == candidate) {
            Some(member) => members.push(member as u32),
            None => {
                let (role, candidate) = (role.name.clone(), candidate.clone());
                return Err(ProposalProblem::UnknownCandidate { role, candidate });
            }
        }
    }
    let combo = (0..space.combos()).find(|combo| space.members(*combo) == members);
    combo.ok_or(ProposalProblem::NotInSpace)
}

impl Selector for LmProposal {
    fn name(&self) -> &'static str {
        "lm_proposal"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let round = self.plan.full_round(evidence, self.proposed.iter().copied());
        if !round.cells.is_empty() {
            return SelectorStep::Evaluate(round);
        }
        let reason =
            format!("{} proposals were evaluated{}", self.proposed.len(), listed(&self.issues));
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

    struct StubProposer(Result<Vec<Proposal>, ProposeError>);

    #[async_trait::async_trait]
    impl Propose for StubProposer {
        async fn propose(&self, briefing: &Briefing) -> Result<Vec<Proposal>, ProposeError> {
            assert_eq!(briefing.roles[1].candidates.len(), 3);
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn best_of_the_evaluated_proposals_wins() {
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
        // The seventh, which would be the best, exceeds the maximum.
        let briefing = Briefing { max_proposals: 6, ..Briefing::new(&space) };
        let proposer = StubProposer(Ok(proposals));
        let mut selector = LmProposal::request(&space, &proposer, &briefing, 1).await.unwrap();
        let issues: Vec<String> = selector.issues().iter().map(ToString::to_string).collect();
        assert_eq!(
            issues,
            [
                "proposal 2: `m9` is not a candidate for role `r1`",
                "proposal 3: no candidate for role `r1`",
                "proposal 4: unknown role `r2`",
                "proposal 6: duplicate of an earlier proposal",
            ]
        );
        // The first proposal is not the best.
        let (rounds, end, evidence) =
            run(&space, &mut selector, |cell: Cell| Some(cell.combo as f64 / 10.0));
        assert_eq!((rounds.len(), evidence.cells(), chosen(&end)), (1, 8, 3));
    }

    #[tokio::test]
    async fn missing_or_unusable_proposals_are_errors() {
        let space = grid(&[2, 3], 4);
        let briefing = Briefing::new(&space);
        let request =
            async |reply| LmProposal::request(&space, &StubProposer(reply), &briefing, 1).await;
        let error = request(Err(ProposeError::new("no key"))).await.unwrap_err();
        assert_eq!(error.to_string(), "no proposals: no key");
        let error = request(Ok(vec![proposal(&[("r0", "m0")])])).await.unwrap_err();
        let message = "no usable proposals; proposal 1: no candidate for role `r1`";
        assert_eq!(error.to_string(), message);
    }
}
