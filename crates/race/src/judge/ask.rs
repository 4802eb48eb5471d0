//! Judges are asked: many at once, each in a loop of its own.

use super::court::Court;
use super::prompt::ask_again;
use super::reading::vote;
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, LoopEnd, LoopError, LoopId, LoopLimit, LoopStatus,
    agent_loop_with_id,
};
use bakeoff_core::{FinishReason, Message, NanoDollars, Usage};
use futures_util::future::join_all;

/// One question to one judge.
pub(super) struct Question<'j> {
    pub(super) loop_id: LoopId,
    pub(super) config: &'j AgentLoopConfig,
    pub(super) instructions: &'j str,
    pub(super) prompt: String,
    /// How many responses are compared.
    pub(super) responses: usize,
}

/// What came of a question.
pub(super) struct Answer {
    /// Once, or twice when the first reply could not be read.
    pub(super) said: Vec<Said>,
    pub(super) usage: Usage,
    pub(super) cost: Option<NanoDollars>,
}

/// What a judge said in one loop.
pub(super) struct Said {
    pub(super) loop_id: LoopId,
    /// The reply, or why there is none.
    pub(super) reply: String,
    pub(super) vote: Result<usize, Silence>,
}

/// Why there is no vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nobody can tell what the judge means.
    Unreadable,
    /// The judge's answer ends before its end.
    Cut,
    /// The judge could not be asked.
    Failed,
}

impl Answer {
    /// The vote that counts: the last.
    pub(super) fn vote(&self) -> Result<usize, Silence> {
        self.said.last().map_or(Err(Silence::Failed), |said| said.vote)
    }
}

/// Asks all questions at once, and those judges once more, in the same conversation, whose replies
/// cannot be read. Answers are in the order of the questions.
///
/// Second loops get their names when all first ones have ended, so that names do not depend on who
/// is faster.
pub(super) async fn ask_all(court: &Court<'_>, questions: Vec<Question<'_>>) -> Vec<Answer> {
    let mut talks: Vec<Talk<'_>> =
        questions.into_iter().map(|question| Talk::new(question, court)).collect();
    join_all(talks.iter_mut().map(|talk| talk.ask(court))).await;
    for talk in &mut talks {
        talk.prepare_again(court);
    }
    join_all(talks.iter_mut().map(|talk| talk.ask(court))).await;
    talks.into_iter().map(|talk| talk.answer).collect()
}

/// A conversation with a judge.
struct Talk<'j> {
    config: &'j AgentLoopConfig,
    context: AgentContext,
    responses: usize,
    /// What to ask next, in a loop of this name.
    next: Option<(LoopId, String)>,
    answer: Answer,
}

impl<'j> Talk<'j> {
    fn new(question: Question<'j>, court: &Court<'_>) -> Talk<'j> {
        Talk {
            config: question.config,
            context: AgentContext {
                system_prompt: question.instructions.to_owned(),
                session: court.session.clone(),
                ..AgentContext::default()
            },
            responses: question.responses,
            next: Some((question.loop_id, question.prompt)),
            answer: Answer {
                said: Vec::new(),
                usage: Usage::default(),
                cost: Some(NanoDollars(0)),
            },
        }
    }

    fn prepare_again(&mut self, court: &Court<'_>) {
        let was_cut = match self.answer.vote() {
            Err(Silence::Unreadable) => false,
            Err(Silence::Cut) => true,
            Ok(_) | Err(Silence::Failed) => return,
        };
        let loop_id = court.session.next_loop(&self.config.segment());
        self.next = Some((loop_id, ask_again(self.responses, was_cut)));
    }

    async fn ask(&mut self, court: &Court<'_>) {
        let Some((loop_id, prompt)) = self.next.take() else { return };
        let prompts = vec![AgentMessage::user(prompt)];
        let (tx, cancel) = (court.tx.clone(), court.cancel.clone());
        let end = agent_loop_with_id(
            loop_id.clone(),
            prompts,
            &mut self.context,
            self.config,
            tx,
            cancel,
        )
        .await;
        if let Ok(end) = &end {
            self.answer.usage += end.usage;
            self.answer.cost = sum(self.answer.cost, end.cost);
        }
        let (reply, vote) = heard(end, self.responses);
        self.answer.said.push(Said { loop_id, reply, vote });
    }
}

fn heard(end: Result<LoopEnd, LoopError>, responses: usize) -> (String, Result<usize, Silence>) {
    let end = match end {
        Ok(end) => end,
        Err(error) => return (error.to_string(), Err(Silence::Failed)),
    };
    let trouble = match end.status {
        // Who calls a tool has not ended, and may have said something before.
        LoopStatus::Completed | LoopStatus::LimitReached(LoopLimit::Turns) => None,
        LoopStatus::Failed(failure) => Some(failure.to_string()),
        LoopStatus::Cancelled => Some("cancelled".to_owned()),
        LoopStatus::LimitReached(limit) => Some(limit.to_string()),
    };
    if let Some(trouble) = trouble {
        return (trouble, Err(Silence::Failed));
    }
    let is_own = |message: &&Message| matches!(message, Message::Assistant { .. });
    let mut said = end.new_messages.iter().rev().filter_map(AgentMessage::as_llm);
    let reply = said.find(is_own).map(Message::text).unwrap_or_default();
    // What stands at the end of a reply that was cut off is not its end.
    let read = match end.finish {
        Some(FinishReason::Length) => Err(Silence::Cut),
        _ => vote(&reply, responses).ok_or(Silence::Unreadable),
    };
    (reply, read)
}

/// The sum, where both are known.
pub(crate) fn sum(one: Option<NanoDollars>, other: Option<NanoDollars>) -> Option<NanoDollars> {
    Some(one?.saturating_add(other?))
}
