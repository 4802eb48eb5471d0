//! Several judges.

use super::family::{family_of, kinship};
use crate::error::RaceError;
use crate::judge::{Conclusion, Court, LlmJudgeEvaluation, Poll, readable, refuse, settle, sum};
use crate::names::{Names, list};
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_core::{NanoDollars, Usage};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Several judges, who are asked at once; most of them decide.
///
/// A judge whose preference depends on the order, who cannot be understood or cannot be asked does
/// not vote. Equally many votes are a tie, which the cheaper branch wins. Judges of different makers
/// than the candidates and than each other are best: models like answers of their own kind, and err
/// alike (PoLL, arXiv 2404.18796). The verdict warns of others.
#[derive(Debug, Clone)]
pub struct PanelEvaluation {
    /// The judges.
    pub judges: Vec<LlmJudgeEvaluation>,
}

#[async_trait::async_trait]
impl EvaluationStrategy for PanelEvaluation {
    fn name(&self) -> &str {
        "panel"
    }

    fn accepts(&self, _configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        let none = || self.judges.is_empty().then(|| "there are no judges".to_owned());
        let trouble = self.judges.iter().find_map(LlmJudgeEvaluation::trouble);
        refuse(self.name(), trouble.or_else(none))
    }

    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        let court = match Court::open(prompts, outcomes, tx, cancel) {
            Ok(court) => court,
            Err(decision) => return (*decision, Usage::default()),
        };
        let mut polls: Vec<Poll<'_>> = self
            .judges
            .iter()
            .map(|judge| Poll::new(judge, court.places.clone(), &court))
            .collect();
        settle(&court, &mut polls).await;
        let mut usage = Usage::default();
        polls.iter().for_each(|poll| usage += poll.usage);
        (self.decision(polls, &court), usage)
    }
}

impl PanelEvaluation {
    fn decision(&self, polls: Vec<Poll<'_>>, court: &Court<'_>) -> EvaluationDecision {
        let Court { places, outcomes, .. } = court;
        let names = Names::of(outcomes);
        let mut votes = vec![0_usize; outcomes.len()];
        let mut reasons = Vec::new();
        let mut notes = Vec::new();
        let mut ballots = Vec::new();
        let mut cost = Some(NanoDollars(0));
        let mut failed = 0;
        let mut unreadable = 0;
        for (judge, poll) in self.judges.iter().zip(polls) {
            let name = judge.judge_config.segment();
            reasons.push(match &poll.conclusion {
                Some(Conclusion::Decided(place)) => {
                    if let Some(count) = votes.get_mut(*place) {
                        *count += 1;
                    }
                    let words =
                        poll.last_ballots().iter().find_map(|ballot| readable(ballot, &names));
                    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
                    format!("{name} prefers {}{words}", names.of_place(*place))
                }
                Some(Conclusion::Tied(named)) => format!(
                    "{name} does not vote: its preference depends on the order ({})",
                    names.list(named, "or")
                ),
                Some(Conclusion::Unreadable(_)) => {
                    unreadable += 1;
                    format!("{name} does not vote: nobody can tell what it means")
                }
                Some(Conclusion::Failed(reason, _)) => {
                    failed += 1;
                    format!("{name} could not be asked: {reason}")
                }
                None => format!("{name} was not asked"),
            });
            notes.extend(poll.notes.iter().map(|note| format!("{name}: {note}")));
            notes.extend(kinship(judge, places, outcomes, &names));
            ballots.extend(poll.ballots);
            cost = sum(cost, poll.cost);
        }
        notes.extend(one_family(&self.judges));
        let most = votes.iter().max().copied().unwrap_or_default();
        let is_leading = |place: &&usize| most > 0 && votes.get(**place) == Some(&most);
        let leading: Vec<usize> = places.iter().filter(is_leading).copied().collect();
        let (kind, ranking, fallback) = match &leading[..] {
            [winner] => (VerdictKind::Decided, vec![*winner], None),
            [] => {
                let kind = match self.judges.len() {
                    judges if failed == judges => VerdictKind::JudgeFailed,
                    judges if failed + unreadable == judges => VerdictKind::Unparseable,
                    _ => VerdictKind::Tie,
                };
                let broken = break_tie(outcomes, places);
                (kind, broken.ranking, Some(broken.words))
            }
            several => {
                let broken = break_tie(outcomes, several);
                (VerdictKind::Tie, broken.ranking, Some(broken.words))
            }
        };
        let count: Vec<String> = places
            .iter()
            .map(|place| {
                let count = votes.get(*place).copied().unwrap_or_default();
                format!("{} {count}", names.of_place(*place))
            })
            .collect();
        reasons.insert(0, format!("votes of {} judges: {}", self.judges.len(), count.join(", ")));
        reasons.extend(fallback.clone());
        reasons.extend(notes);
        EvaluationDecision {
            selected: ranking.first().copied(),
            verdict: Verdict { ranking, reasons, fallback, ballots, cost, ..Verdict::of(kind) },
        }
    }
}

/// Warnings about judges who are of one kind among themselves.
fn one_family(judges: &[LlmJudgeEvaluation]) -> Vec<String> {
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for judge in judges {
        families.entry(family_of(judge)).or_default().push(judge.judge_config.segment());
    }
    let alike = families.values().filter(|members| members.len() > 1);
    alike
        .map(|members| {
            let members = list(members, "and");
            format!("warning: the judges {members} are of one family, and err alike")
        })
        .collect()
}
