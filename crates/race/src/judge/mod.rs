//! A model as the judge of a race.
//!
//! The judge sees the prior conversation, the query and the answers without names, and votes for the best
//! answer. The prompt, the parsing of replies and the re-ask follow the protocol in [`bakeoff_check::judge`].
//! `conversation` selects what the judge sees, `compaction` fits it into the context window, `session` makes the
//! calls, and `poll` counts the votes.

mod compaction;
mod context;
mod conversation;
mod evidence;
mod poll;
mod session;

pub(crate) use context::{JudgeContext, reject_problem};
pub(crate) use evidence::{excerpt, readable_evidence};
pub(crate) use poll::{Conclusion, JudgeFailure, Poll, run_polls};
pub(crate) use session::add_costs;

use crate::error::RaceError;
use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;
use crate::strategies::family_warnings;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::{TieBreak, break_tie};
use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender, check_loop};
use bakeoff_check::judge::{BestResponse, JudgeQuestion};
use bakeoff_core::Usage;
use tokio_util::sync::CancellationToken;

/// Selection by a judge model.
///
/// The judge sees the answers in both orders, and in further rounds while the orders disagree. If they never
/// agree, the branches with the most votes are a tie, which the cheaper one wins.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LlmJudgeEvaluation {
    /// The judge. With a `context_config`, the prompt is compacted to its context window.
    pub judge_config: AgentLoopConfig,
    /// System prompt instead of the built-in one. The reply format is part of the question and is not
    /// replaced.
    pub system_prompt: Option<String>,
    /// Orders in which the judge sees the answers.
    pub orders: Orders,
    /// Maximum number of rounds; orders that disagree in the last round are a tie.
    pub rounds: u32,
}

/// Orders in which a judge sees the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Orders {
    /// One order and its reverse. More than two answers are shuffled, seeded by the
    /// race's first loop, the judge and the round.
    #[default]
    Both,
    /// The order of the configs, once. This costs half as much as [`Both`](Orders::Both) and does not detect
    /// position bias.
    AsGiven,
}

/// Default number of rounds. Where bias and noise are about as large as the difference, the third round still
/// makes the better answer win noticeably more often; the fourth hardly does.
const DEFAULT_ROUNDS: u32 = 3;

impl LlmJudgeEvaluation {
    /// A judge with default settings.
    pub fn new(judge_config: AgentLoopConfig) -> LlmJudgeEvaluation {
        LlmJudgeEvaluation {
            judge_config,
            system_prompt: None,
            orders: Orders::default(),
            rounds: DEFAULT_ROUNDS,
        }
    }

    /// Sets a system prompt instead of the built-in one.
    #[must_use]
    pub fn system_prompt(mut self, system_prompt: impl Into<String>) -> LlmJudgeEvaluation {
        self.system_prompt = Some(system_prompt.into());
        self
    }

    /// Sets the orders in which the judge sees the answers.
    #[must_use]
    pub fn orders(mut self, orders: Orders) -> LlmJudgeEvaluation {
        self.orders = orders;
        self
    }

    /// Sets the maximum number of rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> LlmJudgeEvaluation {
        self.rounds = rounds;
        self
    }

    fn instructions(&self, question: BestResponse) -> String {
        self.system_prompt.clone().unwrap_or_else(|| question.instructions())
    }

    fn window(&self) -> Option<u64> {
        self.judge_config.context_config.as_ref().map(|config| config.max_context_tokens)
    }

    /// Returns why no call of the judge can succeed.
    pub(crate) fn problem(&self) -> Option<String> {
        let prompts = [AgentMessage::user("?")];
        let error = check_loop(&prompts, &AgentContext::default(), &self.judge_config).err()?;
        Some(format!("judge: {error}"))
    }
}

#[async_trait::async_trait]
impl EvaluationStrategy for LlmJudgeEvaluation {
    fn name(&self) -> &str {
        "judge"
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
        let mut polls = [Poll::new(self, 0, context.candidates.clone(), &context)];
        run_polls(&context, &mut polls).await;
        let [poll] = polls;
        let usage = poll.usage;
        (self.decide(poll, &context), usage)
    }
}

/// Returns the decision if fewer than two branches can win.
pub(crate) fn decide_without_judge(candidates: &[usize]) -> Option<EvaluationDecision> {
    let (kind, reason) = match candidates {
        [] => (VerdictKind::NoneAcceptable, "no branch has an answer"),
        [_] => (VerdictKind::Unopposed, "the only branch with an answer"),
        [_, _, ..] => return None,
    };
    let verdict = Verdict {
        ranking: candidates.to_vec(),
        reasons: vec![reason.to_owned()],
        ..Verdict::of(kind)
    };
    Some(EvaluationDecision { selected: candidates.first().copied(), verdict })
}

impl LlmJudgeEvaluation {
    fn decide(&self, poll: Poll<'_>, context: &JudgeContext<'_>) -> EvaluationDecision {
        let names = BranchNames::of(context.outcomes);
        let rounds = poll.rounds();
        let failed = || Conclusion::Failed(JudgeFailure::of_call("no call was made"), Vec::new());
        let conclusion = poll.conclusion.clone().unwrap_or_else(failed);
        let mut reasons = vec![match &conclusion {
            Conclusion::Decided(index) => {
                let winner = names.of_branch(*index);
                match self.orders {
                    Orders::AsGiven => format!("the judge prefers {winner}"),
                    Orders::Both if rounds > 1 => {
                        format!("the judge prefers {winner} in both orders, in round {rounds}")
                    }
                    Orders::Both => format!("the judge prefers {winner} in both orders"),
                }
            }
            Conclusion::Tied(leading) => format!(
                "the judge's preference depends on the order, after {}: votes for {}",
                format_count(rounds, "round"),
                names.list(leading, "and")
            ),
            Conclusion::Unparseable(_) => {
                let invalid = poll.ballots.iter().rfind(|ballot| ballot.choice.is_none());
                let reply = invalid.map(|ballot| excerpt(&ballot.reply)).unwrap_or_default();
                format!("judge reply unparseable after re-asking: {reply:?}")
            }
            Conclusion::Failed(failure, _) => failure.to_string(),
        }];
        for ballot in poll.last_ballots() {
            let evidence = readable_evidence(ballot, &names);
            reasons.extend(evidence.map(|evidence| format!("the judge: {evidence}")));
        }
        let votes = VoteRanking::new(&conclusion, &context.candidates, context.outcomes);
        reasons.extend(votes.fallback.clone());
        reasons.extend(family_warnings(self, &context.candidates, context.outcomes, &names));
        reasons.extend(poll.notes);
        EvaluationDecision {
            selected: votes.ranking.first().copied(),
            verdict: Verdict {
                ranking: votes.ranking,
                reasons,
                fallback: votes.fallback,
                ballots: poll.ballots,
                cost: poll.cost,
                ..Verdict::of(votes.kind)
            },
        }
    }
}

/// The ranking that follows from a judge's votes.
struct VoteRanking {
    kind: VerdictKind,
    /// Best first. A judge does not rank the branches that lose, so a loser is included only if it is the
    /// only one.
    ranking: Vec<usize>,
    fallback: Option<String>,
}

impl VoteRanking {
    fn new(
        conclusion: &Conclusion,
        candidates: &[usize],
        outcomes: &[ParallelLoopOutcome],
    ) -> VoteRanking {
        let (kind, leading) = match conclusion {
            Conclusion::Decided(winner) => {
                let mut ranking = vec![*winner];
                if candidates.len() == 2 {
                    ranking.extend(candidates.iter().filter(|index| *index != winner));
                }
                return VoteRanking { kind: VerdictKind::Decided, ranking, fallback: None };
            }
            Conclusion::Tied(leading) => (VerdictKind::Tie, leading),
            Conclusion::Unparseable(leading) => (VerdictKind::Unparseable, leading),
            Conclusion::Failed(failure, leading) => (failure.kind, leading),
        };
        let (ranking, reason) = match &leading[..] {
            [] => {
                let TieBreak { ranking, reason } = break_tie(outcomes, candidates);
                (ranking, reason)
            }
            [only] => {
                let name = BranchNames::of(outcomes).of_branch(*only);
                (vec![*only], format!("{name} has the most votes"))
            }
            several => {
                let TieBreak { ranking, reason } = break_tie(outcomes, several);
                (ranking, reason)
            }
        };
        VoteRanking { kind, ranking, fallback: Some(reason) }
    }
}

/// Formats a count: `1 round`, `2 rounds`.
pub(crate) fn format_count(number: u32, unit: &str) -> String {
    match number {
        1 => format!("1 {unit}"),
        more => format!("{more} {unit}s"),
    }
}
