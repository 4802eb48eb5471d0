//! The poll of one judge about some branches: rounds of both orders until they agree.
//!
//! Several polls run side by side, round by round, and loop ids are assigned in the order of the polls. A
//! race with a panel therefore asks the same questions in the same loops every time, regardless of which
//! judge replies first.

use super::compaction::{self, CompactedView};
use super::context::JudgeContext;
use super::session::{JudgeAnswer, JudgeCall, NoVote, add_costs, ask_all};
use super::{LlmJudgeEvaluation, Orders};
use crate::strategy::{Ballot, VerdictKind};
use bakeoff_agent::{AgentEvent, AgentLoopConfig, LoopId};
use bakeoff_check::judge::{BestResponse, JudgeMaterial};
use bakeoff_core::{NanoDollars, Usage, estimate_tokens};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::fmt;

/// The poll of one judge about some branches.
pub(crate) struct Poll<'j> {
    judge: &'j LlmJudgeEvaluation,
    /// Position of the judge in its panel.
    seat: usize,
    /// The judge's config without prompts and tools of its own, which its question replaces; without compaction,
    /// because the prompt is already compacted and must not be cut through its fences; and with one turn, because a
    /// judge must not be billed for repeated tool calls.
    config: AgentLoopConfig,
    /// Indices of the branches.
    branches: Vec<usize>,
    /// What the judge sees of them.
    view: CompactedView,
    round: u32,
    /// Votes for each of `branches`.
    votes: Vec<usize>,
    /// The last reply without a vote.
    no_vote: Option<(NoVote, String)>,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) ballots: Vec<Ballot>,
    /// Number of ballots before the current round.
    earlier_ballots: usize,
    /// Remarks about the compaction of what the judge saw.
    pub(crate) notes: Vec<String>,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<NanoDollars>,
}

/// The outcome of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// Both orders voted for this branch.
    Decided(usize),
    /// The orders never agreed; these branches have the most votes.
    Tied(Vec<usize>),
    /// A reply was unparseable in at least one order; these branches have the most votes of the other.
    Unparseable(Vec<usize>),
    /// A call failed in at least one order; these branches have the most votes of the other.
    Failed(JudgeFailure, Vec<usize>),
}

/// Why a judge gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JudgeFailure {
    /// Kind of the verdict that follows from it.
    pub(crate) kind: VerdictKind,
    pub(crate) reason: String,
}

impl JudgeFailure {
    /// Returns the failure of a call.
    pub(crate) fn of_call(reason: impl Into<String>) -> JudgeFailure {
        JudgeFailure { kind: VerdictKind::JudgeFailed, reason: reason.into() }
    }
}

impl fmt::Display for JudgeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            VerdictKind::BudgetExhausted => "judge not called",
            _ => "judge call failed",
        };
        write!(f, "{what}: {}", self.reason)
    }
}

/// Positions in [`Poll::branches`], in the order in which the judge sees them.
type PresentedOrder = Vec<usize>;

/// A question of a round.
struct RoundQuestion {
    order: PresentedOrder,
    loop_id: LoopId,
    prompt: String,
}

impl<'j> Poll<'j> {
    /// `seat` is the position of the judge in its panel.
    pub(crate) fn new(
        judge: &'j LlmJudgeEvaluation,
        seat: usize,
        branches: Vec<usize>,
        context: &JudgeContext<'_>,
    ) -> Self {
        let answer = |index: &usize| {
            context.outcomes.get(*index).map(|outcome| outcome.answer()).unwrap_or_default()
        };
        let responses: Vec<String> = branches.iter().map(answer).collect();
        let window = judge.window();
        let view = compaction::compact(&context.conversation.prior, &responses, window);
        let mut config = judge.judge_config.clone();
        config.context_config = None;
        config.system_prompt = None;
        config.prompt_template = None;
        config.tools = None;
        config.limits.max_turns = 1;
        Poll {
            config,
            votes: vec![0; branches.len()],
            notes: view.describe().into_iter().collect(),
            judge,
            seat,
            branches,
            view,
            round: 0,
            no_vote: None,
            conclusion: None,
            ballots: Vec::new(),
            earlier_ballots: 0,
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
        }
    }

    /// Returns the round that decided, or the last one.
    pub(crate) fn rounds(&self) -> u32 {
        self.round
    }

    /// Returns the ballots of the last round.
    pub(crate) fn last_ballots(&self) -> &[Ballot] {
        self.ballots.get(self.earlier_ballots..).unwrap_or_default()
    }

    /// Returns the questions of the next round; none if the poll has a conclusion.
    fn next_round(&mut self, context: &JudgeContext<'_>) -> Vec<RoundQuestion> {
        if self.conclusion.is_some() {
            return Vec::new();
        }
        self.round += 1;
        self.earlier_ballots = self.ballots.len();
        let next_id = || context.session.next_loop(&self.config.segment());
        let first = next_id();
        let mut order: PresentedOrder = (0..self.branches.len()).collect();
        let mut loops = Vec::new();
        if self.judge.orders == Orders::Both {
            if order.len() > 2 {
                order.shuffle(&mut self.shuffler(context));
            }
            let reversed: PresentedOrder = order.iter().rev().copied().collect();
            loops.push((reversed, next_id()));
        }
        loops.insert(0, (order, first));
        let questions: Vec<RoundQuestion> = loops
            .into_iter()
            .map(|(order, loop_id)| {
                let prompt = self.prompt(&order, context);
                RoundQuestion { order, loop_id, prompt }
            })
            .collect();
        if self.round == 1 {
            self.warn_if_too_large(&questions, context);
        }
        questions
    }

    /// Returns the source of the order of this round. It does not depend on the loops of judges, so that a resumed
    /// race asks the same questions as before.
    fn shuffler(&self, context: &JudgeContext<'_>) -> ChaCha8Rng {
        let first = context.outcomes.first().map_or(0, |outcome| outcome.loop_id.number());
        let seat = u64::try_from(self.seat).unwrap_or(u64::MAX);
        ChaCha8Rng::seed_from_u64(
            u64::from(first).wrapping_shl(32) ^ seat.wrapping_shl(16) ^ u64::from(self.round),
        )
    }

    fn question(&self) -> BestResponse {
        BestResponse { responses: self.branches.len() }
    }

    fn prompt(&self, order: &[usize], context: &JudgeContext<'_>) -> String {
        let responses: Vec<&str> = order
            .iter()
            .filter_map(|position| self.view.responses.get(*position))
            .map(String::as_str)
            .collect();
        let prior = self.view.prior.as_str();
        let material = JudgeMaterial {
            context: (!prior.is_empty()).then_some(prior),
            query: Some(&context.conversation.query),
            responses: &responses,
            ..JudgeMaterial::default()
        };
        material.prompt(&self.question())
    }

    /// Emits a warning if the judge's context window is too small for the prompt.
    fn warn_if_too_large(&mut self, questions: &[RoundQuestion], context: &JudgeContext<'_>) {
        let (Some(window), Some(question)) = (self.judge.window(), questions.first()) else {
            return;
        };
        let instructions = self.judge.instructions(self.question());
        let tokens = estimate_tokens(&instructions) + estimate_tokens(&question.prompt);
        let text = if !self.view.fits() {
            format!(
                "the judge's material has about {} tokens after compaction; the budget is {}",
                self.view.tokens, self.view.budget
            )
        } else if tokens > window {
            format!("the judge's prompt has about {tokens} tokens; the context window is {window}")
        } else {
            return;
        };
        self.notes.push(text.clone());
        context.tx.send(AgentEvent::ProgressMessage { loop_id: question.loop_id.clone(), text });
    }

    /// Counts the votes of a round.
    fn count(&mut self, answers: Vec<(PresentedOrder, JudgeAnswer)>) {
        let mut votes = Vec::new();
        for (order, answer) in answers {
            let branches: Vec<usize> =
                order.iter().filter_map(|position| self.branches.get(*position)).copied().collect();
            let position = |vote: Result<usize, NoVote>| {
                vote.ok().and_then(|number| order.get(number.checked_sub(1)?)).copied()
            };
            let vote = position(answer.vote());
            if let Err(no_vote) = answer.vote() {
                let text = answer.replies.last().map(|reply| reply.text.clone());
                self.no_vote = Some((no_vote, text.unwrap_or_default()));
            }
            votes.push(vote);
            self.usage += answer.usage;
            self.cost = add_costs(self.cost, answer.cost);
            self.ballots.extend(answer.replies.into_iter().map(|reply| Ballot {
                choice: position(reply.vote).and_then(|index| self.branches.get(index)).copied(),
                loop_id: reply.loop_id,
                order: branches.clone(),
                reply: reply.text,
            }));
        }
        for position in votes.iter().flatten() {
            if let Some(count) = self.votes.get_mut(*position) {
                *count += 1;
            }
        }
        self.conclusion = self.conclude(&votes);
    }

    fn conclude(&self, votes: &[Option<usize>]) -> Option<Conclusion> {
        let branch = |position: usize| self.branches.get(position).copied();
        if let Some(Some(first)) = votes.first()
            && votes.iter().all(|vote| *vote == Some(*first))
        {
            return branch(*first).map(Conclusion::Decided);
        }
        // Without a vote in either order, another round is pointless: either all four replies were invalid or
        // the calls fail.
        let is_without_votes = votes.iter().all(Option::is_none);
        if !is_without_votes && self.round < self.judge.rounds {
            return None;
        }
        let max = self.votes.iter().max().copied().unwrap_or_default();
        let is_leading = |position: &usize| max > 0 && self.votes.get(*position) == Some(&max);
        let leading: Vec<usize> =
            (0..self.branches.len()).filter(is_leading).filter_map(branch).collect();
        let distinct = self.votes.iter().filter(|count| **count > 0).count();
        Some(match &self.no_vote {
            Some((NoVote::CallFailed, reason)) if distinct < 2 || is_without_votes => {
                Conclusion::Failed(JudgeFailure::of_call(reason), leading)
            }
            Some((NoVote::OverBudget, reason)) if distinct < 2 || is_without_votes => {
                let kind = VerdictKind::BudgetExhausted;
                Conclusion::Failed(JudgeFailure { kind, reason: reason.clone() }, leading)
            }
            Some(_) if distinct < 2 || is_without_votes => Conclusion::Unparseable(leading),
            _ => Conclusion::Tied(leading),
        })
    }
}

/// Runs rounds until every poll has its conclusion.
pub(crate) async fn run_polls(context: &JudgeContext<'_>, polls: &mut [Poll<'_>]) {
    loop {
        let mut round = Vec::new();
        for (index, poll) in polls.iter_mut().enumerate() {
            round.extend(poll.next_round(context).into_iter().map(|question| (index, question)));
        }
        if round.is_empty() {
            return;
        }
        announce_round(context, polls, &round);
        let mut sources = Vec::new();
        let mut calls = Vec::new();
        for (index, RoundQuestion { order, loop_id, prompt }) in round {
            let Some(poll) = polls.get(index) else { continue };
            let question = poll.question();
            calls.push(JudgeCall {
                loop_id,
                config: &poll.config,
                instructions: poll.judge.instructions(question),
                prompt,
                question,
            });
            sources.push((index, order));
        }
        let answers = ask_all(context, calls).await;
        let mut answers_by_poll: Vec<Vec<(PresentedOrder, JudgeAnswer)>> =
            polls.iter().map(|_| Vec::new()).collect();
        for ((index, order), answer) in sources.into_iter().zip(answers) {
            if let Some(answers) = answers_by_poll.get_mut(index) {
                answers.push((order, answer));
            }
        }
        for (poll, answers) in polls.iter_mut().zip(answers_by_poll) {
            if !answers.is_empty() {
                poll.count(answers);
            }
        }
    }
}

/// Emits an event for each judge that is asked in a round. All polls of a judge are in the same round.
fn announce_round(
    context: &JudgeContext<'_>,
    polls: &[Poll<'_>],
    questions: &[(usize, RoundQuestion)],
) {
    let mut seats: Vec<usize> = Vec::new();
    let poll_of = |index: usize| polls.get(index);
    for (index, _) in questions {
        let Some(poll) = poll_of(*index) else { continue };
        if seats.contains(&poll.seat) {
            continue;
        }
        seats.push(poll.seat);
        let is_own = |index: usize| poll_of(index).is_some_and(|other| other.seat == poll.seat);
        let own = questions.iter().filter(|(index, _)| is_own(*index));
        context.tx.send(AgentEvent::JudgeRound {
            loop_ids: own.map(|(_, question)| question.loop_id.clone()).collect(),
            round: poll.round,
            max_rounds: match poll.judge.orders {
                // A single order cannot disagree with another one.
                Orders::AsGiven => 1,
                Orders::Both => poll.judge.rounds.max(1),
            },
        });
    }
}
