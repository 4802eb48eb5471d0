//! A panel of several judges.

use super::family::{family_of, family_warnings};
use crate::error::RaceError;
use crate::judge::{
    Conclusion, JudgeContext, LlmJudgeEvaluation, Poll, add_costs, readable_evidence,
    reject_problem, run_polls,
};
use crate::names::{BranchNames, list};
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_core::{NanoDollars, Usage};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Selection by the votes of several judges, which are called concurrently.
///
/// A judge whose preference depends on the order, whose reply is unparseable or whose call fails does not
/// vote. If fewer judges vote than the quorum, the panel does not decide, and the branches with the most votes are
/// the fallback. An equal number of votes is a tie, which the cheaper branch wins. Judges should be of other families
/// than the candidates and than each other: models prefer answers of their own family and make similar errors
/// (PoLL, arXiv 2404.18796). The verdict warns otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PanelEvaluation {
    /// The judges.
    pub judges: Vec<LlmJudgeEvaluation>,
    /// Minimum number of judges that must vote; `None` for more than half of them.
    pub quorum: Option<usize>,
}

impl PanelEvaluation {
    /// A panel that decides if more than half of its judges vote.
    pub fn new(judges: Vec<LlmJudgeEvaluation>) -> PanelEvaluation {
        PanelEvaluation { judges, quorum: None }
    }

    /// Sets the minimum number of judges that must vote.
    #[must_use]
    pub fn quorum(mut self, judges: usize) -> PanelEvaluation {
        self.quorum = Some(judges);
        self
    }

    fn required_votes(&self) -> usize {
        self.quorum.unwrap_or(self.judges.len() / 2 + 1)
    }

    fn problem(&self) -> Option<String> {
        if self.judges.is_empty() {
            return Some("no judges given".to_owned());
        }
        if !(1..=self.judges.len()).contains(&self.required_votes()) {
            let judges = self.judges.len();
            return Some(format!("a quorum of {} of {judges} judges", self.required_votes()));
        }
        self.judges.iter().find_map(LlmJudgeEvaluation::problem)
    }
}

#[async_trait::async_trait]
impl EvaluationStrategy for PanelEvaluation {
    fn name(&self) -> &str {
        "panel"
    }

    fn accepts(&self, _configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        reject_problem(self.name(), self.problem())
    }

    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        let context = match JudgeContext::new(prompts, outcomes, tx, cancel) {
            Ok(context) => context,
            Err(decision) => return (*decision, Usage::default()),
        };
        let mut polls: Vec<Poll<'_>> = self
            .judges
            .iter()
            .enumerate()
            .map(|(seat, judge)| Poll::new(judge, seat, context.candidates.clone(), &context))
            .collect();
        run_polls(&context, &mut polls).await;
        let mut usage = Usage::default();
        polls.iter().for_each(|poll| usage += poll.usage);
        (self.decide(polls, &context), usage)
    }
}

impl PanelEvaluation {
    fn decide(&self, polls: Vec<Poll<'_>>, context: &JudgeContext<'_>) -> EvaluationDecision {
        let JudgeContext { candidates, outcomes, .. } = context;
        let names = BranchNames::of(outcomes);
        let mut votes = vec![0_usize; outcomes.len()];
        let mut reasons = Vec::new();
        let mut notes = Vec::new();
        let mut ballots = Vec::new();
        let mut cost = Some(NanoDollars(0));
        let (mut failed, mut over_budget) = (0, 0);
        let mut unparseable = 0;
        for (judge, poll) in self.judges.iter().zip(polls) {
            let name = judge.judge_config.segment();
            reasons.push(match &poll.conclusion {
                Some(Conclusion::Decided(index)) => {
                    if let Some(count) = votes.get_mut(*index) {
                        *count += 1;
                    }
                    let ballots = poll.last_ballots();
                    let evidence =
                        ballots.iter().find_map(|ballot| readable_evidence(ballot, &names));
                    let evidence =
                        evidence.map(|evidence| format!(": {evidence}")).unwrap_or_default();
                    format!("{name} prefers {}{evidence}", names.of_branch(*index))
                }
                Some(Conclusion::Tied(leading)) => format!(
                    "{name} does not vote: its preference depends on the order ({})",
                    names.list(leading, "or")
                ),
                Some(Conclusion::Unparseable(_)) => {
                    unparseable += 1;
                    format!("{name} does not vote: reply unparseable after re-asking")
                }
                Some(Conclusion::Failed(failure, _)) => {
                    failed += 1;
                    let what = match failure.kind {
                        VerdictKind::BudgetExhausted => {
                            over_budget += 1;
                            "not called"
                        }
                        _ => "call failed",
                    };
                    format!("{name} does not vote: {what}: {}", failure.reason)
                }
                None => format!("{name} does not vote: no call was made"),
            });
            notes.extend(poll.notes.iter().map(|note| format!("{name}: {note}")));
            notes.extend(family_warnings(judge, candidates, outcomes, &names));
            ballots.extend(poll.ballots);
            cost = add_costs(cost, poll.cost);
        }
        notes.extend(shared_family_warnings(&self.judges));
        let max = votes.iter().max().copied().unwrap_or_default();
        let is_leading = |index: &&usize| max > 0 && votes.get(**index) == Some(&max);
        let leading: Vec<usize> = candidates.iter().filter(is_leading).copied().collect();
        let cast: usize = votes.iter().sum();
        let is_quorate = cast >= self.required_votes();
        let kind = match self.judges.len() {
            _ if is_quorate && leading.len() == 1 => VerdictKind::Decided,
            _ if is_quorate => VerdictKind::Tie,
            // Judges whose preference depends on the order have compared the answers.
            judges if failed + unparseable + self.required_votes() <= judges => VerdictKind::Tie,
            judges if over_budget == judges => VerdictKind::BudgetExhausted,
            judges if failed == judges => VerdictKind::JudgeFailed,
            judges if failed + unparseable == judges => VerdictKind::Unparseable,
            _ => VerdictKind::NoQuorum,
        };
        if kind == VerdictKind::NoQuorum {
            let required = self.required_votes();
            reasons.push(format!(
                "only {cast} of {} judges voted; {required} must",
                self.judges.len()
            ));
        }
        let (ranking, fallback) = match &leading[..] {
            [winner] if kind == VerdictKind::Decided => (vec![*winner], None),
            [winner] => {
                (vec![*winner], Some(format!("{} has the most votes", names.of_branch(*winner))))
            }
            several => {
                let tied = if several.is_empty() { candidates } else { &leading };
                let tie_break = break_tie(outcomes, tied);
                (tie_break.ranking, Some(tie_break.reason))
            }
        };
        let counts: Vec<String> = candidates
            .iter()
            .map(|index| {
                let count = votes.get(*index).copied().unwrap_or_default();
                format!("{} {count}", names.of_branch(*index))
            })
            .collect();
        let judges = match self.judges.len() {
            1 => "vote of 1 judge".to_owned(),
            judges => format!("votes of {judges} judges"),
        };
        reasons.insert(0, format!("{judges}: {}", counts.join(", ")));
        reasons.extend(fallback.clone());
        reasons.extend(notes);
        EvaluationDecision {
            selected: ranking.first().copied(),
            verdict: Verdict { ranking, reasons, fallback, ballots, cost, ..Verdict::of(kind) },
        }
    }
}

/// Returns warnings about judges of the same family.
fn shared_family_warnings(judges: &[LlmJudgeEvaluation]) -> Vec<String> {
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for judge in judges {
        families.entry(family_of(judge)).or_default().push(judge.judge_config.segment());
    }
    let shared = families.values().filter(|members| members.len() > 1);
    shared
        .map(|members| {
            let members = list(members, "and");
            format!("warning: the judges {members} are of one family and make similar errors")
        })
        .collect()
}
