//! Conversations with judges: all questions of a round are asked concurrently, each in its own loop.

use super::context::JudgeContext;
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, LoopEnd, LoopError, LoopId, LoopLimit, LoopStatus,
    RecordedReply, agent_loop_with_id,
};
use bakeoff_check::judge::{BestResponse, Exchange, ExchangeStep, JudgeCompletion};
use bakeoff_core::{ErrorKind, FinishReason, Message, NanoDollars, Usage};
use futures_util::future::join_all;

/// One question to one judge.
pub(super) struct JudgeCall<'j> {
    pub(super) loop_id: LoopId,
    pub(super) config: &'j AgentLoopConfig,
    pub(super) instructions: String,
    pub(super) prompt: String,
    pub(super) question: BestResponse,
}

/// The result of a question.
pub(super) struct JudgeAnswer {
    /// One reply, or two if the first was invalid.
    pub(super) replies: Vec<JudgeReply>,
    pub(super) usage: Usage,
    pub(super) cost: Option<NanoDollars>,
}

/// A judge's reply in one loop.
pub(super) struct JudgeReply {
    pub(super) loop_id: LoopId,
    /// The text, or why the call failed.
    pub(super) text: String,
    pub(super) vote: Result<usize, NoVote>,
}

/// Why a reply has no vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoVote {
    /// The reply is invalid.
    Unparseable,
    /// The call failed.
    CallFailed,
    /// The budget does not cover the call, so it was not made.
    OverBudget,
}

impl JudgeAnswer {
    /// Returns the vote of the last reply, which is the one that counts.
    pub(super) fn vote(&self) -> Result<usize, NoVote> {
        self.replies.last().map_or(Err(NoVote::CallFailed), |reply| reply.vote)
    }
}

/// Asks all questions concurrently, and re-asks invalid replies once in the same conversation. The answers
/// are in the order of the calls.
///
/// Loops of re-asks get their ids after all first replies have arrived, so ids do not depend on timing.
pub(super) async fn ask_all(
    context: &JudgeContext<'_>,
    calls: Vec<JudgeCall<'_>>,
) -> Vec<JudgeAnswer> {
    let mut sessions: Vec<JudgeSession<'_>> =
        calls.into_iter().map(|call| JudgeSession::new(call, context)).collect();
    join_all(sessions.iter_mut().map(|session| session.ask(context))).await;
    for session in &mut sessions {
        session.prepare_reask(context);
    }
    join_all(sessions.iter_mut().map(|session| session.ask(context))).await;
    sessions.into_iter().map(|session| session.answer).collect()
}

/// A conversation with a judge.
struct JudgeSession<'j> {
    config: &'j AgentLoopConfig,
    context: AgentContext,
    question: BestResponse,
    exchange: Exchange,
    /// The next prompt and the id of its loop.
    next: Option<(LoopId, String)>,
    /// The message of a re-ask that has no loop yet.
    reask: Option<String>,
    answer: JudgeAnswer,
}

impl<'j> JudgeSession<'j> {
    fn new(call: JudgeCall<'j>, context: &JudgeContext<'_>) -> JudgeSession<'j> {
        JudgeSession {
            config: call.config,
            context: AgentContext::default()
                .with_system_prompt(call.instructions)
                .with_session(context.session.clone()),
            question: call.question,
            exchange: Exchange::default(),
            next: Some((call.loop_id, call.prompt)),
            reask: None,
            answer: JudgeAnswer {
                replies: Vec::new(),
                usage: Usage::default(),
                cost: Some(NanoDollars(0)),
            },
        }
    }

    fn prepare_reask(&mut self, context: &JudgeContext<'_>) {
        let Some(message) = self.reask.take() else { return };
        let loop_id = context.session.next_loop(&self.config.segment());
        self.next = Some((loop_id, message));
    }

    async fn ask(&mut self, context: &JudgeContext<'_>) {
        let Some((loop_id, prompt)) = self.next.take() else { return };
        let reply = match self.recorded(&prompt, context) {
            Some(recorded) => Ok(recorded),
            None => self.call(loop_id.clone(), prompt, context).await,
        };
        let (loop_id, text, vote) = match reply {
            Ok(reply) => {
                self.answer.usage += reply.usage;
                self.answer.cost = add_costs(self.answer.cost, reply.cost);
                let is_truncated = reply.finish == Some(FinishReason::Length);
                let completion = JudgeCompletion { text: reply.text, is_truncated };
                let vote = self.parse(&completion);
                (reply.loop_id, completion.text, vote)
            }
            Err((no_vote, reason)) => (loop_id, reason, Err(no_vote)),
        };
        self.answer.replies.push(JudgeReply { loop_id, text, vote });
    }

    /// Returns the reply to this prompt from before an interruption, and adds both to the conversation.
    fn recorded(&mut self, prompt: &str, context: &JudgeContext<'_>) -> Option<RecordedReply> {
        let reply = context.session.journal()?.take_reply(&self.key(prompt))?;
        self.context.messages.push(AgentMessage::user(prompt));
        self.context.messages.push(Message::assistant(reply.text.as_str()).into());
        Some(reply)
    }

    /// Calls the judge; an error states why there is no reply.
    async fn call(
        &mut self,
        loop_id: LoopId,
        prompt: String,
        context: &JudgeContext<'_>,
    ) -> Result<RecordedReply, (NoVote, String)> {
        let key = self.key(&prompt);
        let journal = context.session.journal();
        if let Some(journal) = &journal {
            journal.record_start(&loop_id);
        }
        let prompts = vec![AgentMessage::user(prompt)];
        let (tx, cancel) = (context.tx.clone(), context.cancel.clone());
        let end = agent_loop_with_id(
            loop_id.clone(),
            prompts,
            &mut self.context,
            self.config,
            tx,
            cancel,
        )
        .await;
        let (usage, cost) = match &end {
            Ok(end) => (end.usage, end.cost),
            Err(_) => (Usage::default(), Some(NanoDollars(0))),
        };
        match reply(end) {
            Ok((text, finish)) => {
                let reply = RecordedReply { loop_id, key, text, finish, usage, cost };
                if let Some(journal) = journal {
                    journal.record_reply(reply.clone());
                }
                Ok(reply)
            }
            Err(failure) => {
                self.answer.usage += usage;
                self.answer.cost = add_costs(self.answer.cost, cost);
                Err(failure)
            }
        }
    }

    /// Returns a digest of everything that the reply to a prompt depends on.
    fn key(&self, prompt: &str) -> String {
        let (model, request) = (self.config.model.name(), &self.config.request);
        let AgentContext { system_prompt, messages, .. } = &self.context;
        // Only the texts of earlier replies are recorded.
        let texts = messages.iter().filter_map(AgentMessage::as_llm).map(Message::text);
        let texts: Vec<String> = texts.collect();
        let question = (self.config.segment(), model, request, system_prompt, texts, prompt);
        let mut hasher = blake3::Hasher::new();
        // All parts are text and numbers, and hashing does not fail, so there is no error.
        let _ = serde_json::to_writer(&mut hasher, &question);
        hasher.finalize().to_hex().to_string()
    }

    fn parse(&mut self, completion: &JudgeCompletion) -> Result<usize, NoVote> {
        match self.exchange.receive(&self.question, completion) {
            ExchangeStep::Verdict(number) => Ok(number),
            ExchangeStep::Reask(message) => {
                self.reask = Some(message);
                Err(NoVote::Unparseable)
            }
            ExchangeStep::Invalid(_) => Err(NoVote::Unparseable),
        }
    }
}

/// Returns the text of a judge's loop and its finish reason, or why the loop failed.
fn reply(
    end: Result<LoopEnd, LoopError>,
) -> Result<(String, Option<FinishReason>), (NoVote, String)> {
    let failed = |reason: String| (NoVote::CallFailed, reason);
    let end = end.map_err(|error| failed(error.to_string()))?;
    match end.status {
        // A judge that calls a tool exhausts its single turn; its text counts nevertheless.
        LoopStatus::Completed | LoopStatus::LimitReached(LoopLimit::Turns) => {}
        LoopStatus::Failed(failure) if failure.kind == ErrorKind::Budget => {
            return Err((NoVote::OverBudget, failure.to_string()));
        }
        LoopStatus::Failed(failure) => return Err(failed(failure.to_string())),
        LoopStatus::Cancelled => return Err(failed("cancelled".to_owned())),
        LoopStatus::LimitReached(limit) => return Err(failed(limit.to_string())),
    }
    let is_assistant = |message: &&Message| matches!(message, Message::Assistant { .. });
    let mut messages = end.new_messages.iter().rev().filter_map(AgentMessage::as_llm);
    let text = messages.find(is_assistant).map(Message::text).unwrap_or_default();
    Ok((text, end.finish))
}

/// Returns the sum if both costs are known.
pub(crate) fn add_costs(
    one: Option<NanoDollars>,
    other: Option<NanoDollars>,
) -> Option<NanoDollars> {
    Some(one?.saturating_add(other?))
}
