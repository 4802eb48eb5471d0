//! A model as the judge of a race.
//!
//! It sees the prior conversation, the query and the answers, all of it between tags and without
//! names, and says which answer is best. What it is asked lies in `prompt`, what it is shown in
//! `material` and `compact`, how its reply is read in `reading`, and how its votes are counted in
//! `poll`.

mod ask;
mod compact;
mod court;
mod material;
mod poll;
mod prompt;
mod reading;
mod words;

pub(crate) use ask::sum;
pub(crate) use court::{Court, refuse};
pub(crate) use poll::{Conclusion, Poll, settle};
pub(crate) use words::{excerpt, readable};

use crate::error::RaceError;
use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;
use crate::strategies::kinship;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::{TieBreak, break_tie};
use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender, check_loop};
use bakeoff_core::Usage;
use tokio_util::sync::CancellationToken;

/// A model chooses.
///
/// It is asked in both orders, and in new rounds as long as they disagree. Branches that were named
/// equally often to the end are a tie, which the cheaper one wins.
#[derive(Debug, Clone)]
pub struct LlmJudgeEvaluation {
    /// The judge; with a `context_config`, what it sees is made to fit its window.
    pub judge_config: AgentLoopConfig,
    /// What it is told first, instead of the built-in instructions. How to reply is said in the
    /// question itself, whatever stands here.
    pub system_prompt: Option<String>,
    /// In which orders it sees the answers.
    pub orders: Orders,
    /// How often it is asked in both orders before disagreement is a tie.
    pub rounds: u32,
}

/// In which orders a judge sees the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Orders {
    /// One order and its reverse; more than two answers are shuffled, by the number of the judge's
    /// loop.
    #[default]
    Both,
    /// The order of the configs, once. Half the price of [`Both`](Orders::Both), and nobody knows
    /// whether the answer's place decided.
    AsGiven,
}

/// Rounds when nobody says otherwise: where bias and noise are about as large as the difference, the
/// third still makes the better answer win noticeably more often, and the fourth hardly.
const ROUNDS: u32 = 3;

impl LlmJudgeEvaluation {
    /// A judge with everything else at its default.
    pub fn new(judge_config: AgentLoopConfig) -> LlmJudgeEvaluation {
        LlmJudgeEvaluation {
            judge_config,
            system_prompt: None,
            orders: Orders::default(),
            rounds: ROUNDS,
        }
    }

    fn instructions(&self) -> &str {
        self.system_prompt.as_deref().unwrap_or(prompt::INSTRUCTIONS)
    }

    fn window(&self) -> Option<u64> {
        self.judge_config.context_config.as_ref().map(|config| config.max_context_tokens)
    }

    /// Why it cannot be asked, whatever the question.
    pub(crate) fn trouble(&self) -> Option<String> {
        let prompts = [AgentMessage::user("?")];
        let error = check_loop(&prompts, &AgentContext::default(), &self.judge_config).err()?;
        Some(format!("the judge: {error}"))
    }
}

#[async_trait::async_trait]
impl EvaluationStrategy for LlmJudgeEvaluation {
    fn name(&self) -> &str {
        "judge"
    }

    fn accepts(&self, _configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        refuse(self.name(), self.trouble())
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
        let mut polls = [Poll::new(self, court.places.clone(), &court)];
        settle(&court, &mut polls).await;
        let [poll] = polls;
        let usage = poll.usage;
        (self.decision(poll, &court), usage)
    }
}

/// The decision when there are not two to choose among.
pub(crate) fn without_a_choice(places: &[usize]) -> Option<EvaluationDecision> {
    let (kind, reason) = match places {
        [] => (VerdictKind::NoneAcceptable, "no branch has an answer"),
        [_] => (VerdictKind::Unopposed, "the only branch with an answer"),
        [_, _, ..] => return None,
    };
    let verdict =
        Verdict { ranking: places.to_vec(), reasons: vec![reason.to_owned()], ..Verdict::of(kind) };
    Some(EvaluationDecision { selected: places.first().copied(), verdict })
}

impl LlmJudgeEvaluation {
    fn decision(&self, poll: Poll<'_>, court: &Court<'_>) -> EvaluationDecision {
        let names = Names::of(court.outcomes);
        let rounds = poll.rounds();
        let failed = || Conclusion::Failed("it was never asked".to_owned(), Vec::new());
        let conclusion = poll.conclusion.clone().unwrap_or_else(failed);
        let mut reasons = vec![match &conclusion {
            Conclusion::Decided(place) => {
                let winner = names.of_place(*place);
                match self.orders {
                    Orders::AsGiven => format!("the judge prefers {winner}"),
                    Orders::Both if rounds > 1 => {
                        format!("the judge prefers {winner} in both orders, in round {rounds}")
                    }
                    Orders::Both => format!("the judge prefers {winner} in both orders"),
                }
            }
            Conclusion::Tied(named) => format!(
                "the judge's preference depends on the order, after {}: it named {}",
                counted(rounds, "round"),
                names.list(named, "and")
            ),
            Conclusion::Unreadable(_) => {
                let unread = poll.ballots.iter().rfind(|ballot| ballot.choice.is_none());
                let reply = unread.map(|ballot| excerpt(&ballot.reply)).unwrap_or_default();
                format!("nobody can tell what the judge means, even when asked again: {reply:?}")
            }
            Conclusion::Failed(reason, _) => format!("the judge could not be asked: {reason}"),
        }];
        for ballot in poll.last_ballots() {
            reasons.extend(readable(ballot, &names).map(|words| format!("the judge: {words}")));
        }
        let settled = Settled::new(&conclusion, &court.places, court.outcomes);
        reasons.extend(settled.fallback.clone());
        reasons.extend(kinship(self, &court.places, court.outcomes, &names));
        reasons.extend(poll.notes);
        EvaluationDecision {
            selected: settled.ranking.first().copied(),
            verdict: Verdict {
                ranking: settled.ranking,
                reasons,
                fallback: settled.fallback,
                ballots: poll.ballots,
                cost: poll.cost,
                ..Verdict::of(settled.kind)
            },
        }
    }
}

/// Who wins, given what the judge's votes come to.
struct Settled {
    kind: VerdictKind,
    /// The best first. Of those who lose against the winner, a judge does not say who is better, so
    /// they are in it only when there is just one.
    ranking: Vec<usize>,
    fallback: Option<String>,
}

impl Settled {
    fn new(conclusion: &Conclusion, places: &[usize], outcomes: &[ParallelLoopOutcome]) -> Settled {
        let (kind, named) = match conclusion {
            Conclusion::Decided(winner) => {
                let mut ranking = vec![*winner];
                if places.len() == 2 {
                    ranking.extend(places.iter().filter(|place| *place != winner));
                }
                return Settled { kind: VerdictKind::Decided, ranking, fallback: None };
            }
            Conclusion::Tied(named) => (VerdictKind::Tie, named),
            Conclusion::Unreadable(named) => (VerdictKind::Unparseable, named),
            Conclusion::Failed(_, named) => (VerdictKind::JudgeFailed, named),
        };
        let (ranking, words) = match &named[..] {
            [] => {
                let TieBreak { ranking, words } = break_tie(outcomes, places);
                (ranking, words)
            }
            [only] => {
                let name = Names::of(outcomes).of_place(*only);
                (vec![*only], format!("{name} was named most often"))
            }
            several => {
                let TieBreak { ranking, words } = break_tie(outcomes, several);
                (ranking, words)
            }
        };
        Settled { kind, ranking, fallback: Some(words) }
    }
}

/// `1 round`, `2 rounds`.
pub(crate) fn counted(number: u32, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        more => format!("{more} {thing}s"),
    }
}
