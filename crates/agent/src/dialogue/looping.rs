//! The loop itself.

use super::channel::EventSender;
use super::compaction;
use super::config::AgentLoopConfig;
use super::context::{AgentContext, AgentMessage};
use super::end::{Limit, LoopEnd, LoopError, LoopFailure, LoopStatus};
use super::event::{AgentEvent, Role};
use super::session::LoopId;
use super::toolbox::{Results, Toolbox};
use bakeoff_core::{ErrorKind, FinishReason, Message, Request, Tool, ToolCall, Usage};
use bakeoff_llm::{Call, CallContext, CallError, Delta, Failure, Ordinals, Retry};
use jiff::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Asks the model, with prompts added to the context, until it answers without calling tools.
///
/// # Errors
///
/// When it cannot begin. That a call fails later is told in [`LoopEnd::status`].
pub async fn agent_loop(
    prompts: Vec<AgentMessage>,
    context: &mut AgentContext,
    config: &AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<LoopEnd, LoopError> {
    if prompts.is_empty() {
        return Err(LoopError::NoPrompt);
    }
    let loop_id = context.session.next_loop(&config.segment());
    agent_loop_as(loop_id, prompts, context, config, tx, cancel).await
}

/// Asks the model to answer the last message of the context.
///
/// # Errors
///
/// When the context is empty or ends with the model's own words, and as for [`agent_loop`].
pub async fn agent_loop_continue(
    context: &mut AgentContext,
    config: &AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<LoopEnd, LoopError> {
    check_context(context)?;
    let loop_id = context.session.next_loop(&config.segment());
    agent_loop_as(loop_id, Vec::new(), context, config, tx, cancel).await
}

/// Whether a loop can begin; without prompts it continues the context. Nothing is called.
///
/// # Errors
///
/// All of [`LoopError`] but [`LoopError::NoPrompt`].
pub fn check_loop(
    prompts: &[AgentMessage],
    context: &AgentContext,
    config: &AgentLoopConfig,
) -> Result<(), LoopError> {
    toolbox_of(prompts, context, config).map(drop)
}

fn toolbox_of(
    prompts: &[AgentMessage],
    context: &AgentContext,
    config: &AgentLoopConfig,
) -> Result<Toolbox, LoopError> {
    if prompts.is_empty() {
        check_context(context)?;
    }
    if config.limits.max_cost.is_some() && !config.model.is_priced() {
        return Err(LoopError::NoPrice { model: config.model.name().to_owned() });
    }
    Toolbox::new(&context.tools, config.tool_timeout)
}

/// Whether there is something to continue in a context.
fn check_context(context: &AgentContext) -> Result<(), LoopError> {
    if !context.messages.iter().any(|message| message.as_llm().is_some()) {
        return Err(LoopError::EmptyContext);
    }
    if context.ends_on_assistant() {
        return Err(LoopError::EndsOnAssistant);
    }
    Ok(())
}

/// A loop with a name that it was given before; without prompts it continues the context.
///
/// # Errors
///
/// As for [`agent_loop`] and [`agent_loop_continue`].
pub async fn agent_loop_as(
    loop_id: LoopId,
    prompts: Vec<AgentMessage>,
    context: &mut AgentContext,
    config: &AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<LoopEnd, LoopError> {
    let toolbox = toolbox_of(&prompts, context, config)?;
    let started = Instant::now();
    tx.send(AgentEvent::AgentStart {
        loop_id: loop_id.clone(),
        session_id: context.session.id().to_owned(),
        model: config.model.name().to_owned(),
        timestamp: Timestamp::now(),
    });
    let tools = context.tools.iter().map(|tool| tool.definition().clone()).collect();
    let mut going = Going {
        deadline: started.checked_add(config.limits.max_time),
        end: LoopEnd::begun(loop_id),
        context,
        config,
        toolbox,
        tools,
        ordinals: Ordinals::default(),
        last_retry: Mutex::default(),
        tx,
        cancel,
    };
    for prompt in prompts {
        going.tell(&prompt);
        going.context.messages.push(prompt);
    }
    let status = going.until_answered().await;
    let Going { mut end, tx, last_retry, .. } = going;
    end.last_retry = last_retry.into_inner().unwrap_or_else(PoisonError::into_inner);
    end.status = status;
    end.elapsed = started.elapsed();
    tx.send(AgentEvent::AgentEnd {
        loop_id: end.loop_id.clone(),
        status: end.status.clone(),
        usage: end.usage,
        cost: end.cost,
        timestamp: Timestamp::now(),
    });
    Ok(end)
}

/// A loop that is under way.
struct Going<'a> {
    context: &'a mut AgentContext,
    config: &'a AgentLoopConfig,
    toolbox: Toolbox,
    tools: Vec<Tool>,
    ordinals: Ordinals,
    last_retry: Mutex<Option<String>>,
    tx: EventSender,
    cancel: CancellationToken,
    /// `None` when it lies beyond all clocks.
    deadline: Option<Instant>,
    end: LoopEnd,
}

/// Why a wait ended before what was waited for.
enum Interrupted {
    Cancelled,
    TimeIsUp,
}

impl From<Interrupted> for LoopStatus {
    fn from(why: Interrupted) -> LoopStatus {
        match why {
            Interrupted::Cancelled => LoopStatus::Cancelled,
            Interrupted::TimeIsUp => LoopStatus::LimitReached(Limit::Time),
        }
    }
}

impl Going<'_> {
    async fn until_answered(&mut self) -> LoopStatus {
        loop {
            if self.cancel.is_cancelled() {
                return LoopStatus::Cancelled;
            }
            if let Some(limit) = self.limit() {
                return LoopStatus::LimitReached(limit);
            }
            match self.turn().await {
                Ok(true) => {}
                Ok(false) => return LoopStatus::Completed,
                Err(status) => return status,
            }
        }
    }

    /// The limit that leaves no room for another call.
    fn limit(&self) -> Option<Limit> {
        let limits = &self.config.limits;
        if self.end.turns >= limits.max_turns {
            Some(Limit::Turns)
        } else if self.end.usage.total() >= limits.max_tokens {
            Some(Limit::Tokens)
        } else if limits
            .max_cost
            .is_some_and(|most| self.end.cost.is_none_or(|spent| spent >= most))
        {
            Some(Limit::Cost)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Limit::Time)
        } else {
            None
        }
    }

    /// One call of the model and of the tools that it wants; whether another one is needed.
    async fn turn(&mut self) -> Result<bool, LoopStatus> {
        let turn = self.end.turns.saturating_add(1);
        self.tx.send(AgentEvent::TurnStart { loop_id: self.end.loop_id.clone(), turn });
        let (usage, result) = match self.asked().await {
            Ok(call) => {
                self.end.turns = turn;
                (call.response.usage, self.answered(call).await)
            }
            Err(status) => (Usage::default(), Err(status)),
        };
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::TurnEnd { loop_id, turn, usage });
        result
    }

    /// One call of the model, and what it took.
    async fn asked(&mut self) -> Result<Call, LoopStatus> {
        let loop_id = self.end.loop_id.clone();
        let request = self.request();
        let role = Role::Assistant;
        self.tx.send(AgentEvent::MessageStart { loop_id: loop_id.clone(), role });
        let status = match self.ask(request).await {
            Ok(Ok(call)) => {
                self.account(&call);
                return Ok(call);
            }
            Ok(Err(error)) => failed(error, self),
            Err(interrupted) => interrupted.into(),
        };
        if !matches!(status, LoopStatus::Failed(_)) {
            // It may have been on its way, and the provider may charge for it.
            self.end.unaccounted_calls += 1;
        }
        self.tx.send(AgentEvent::MessageAborted { loop_id });
        Err(status)
    }

    /// What the model said becomes part of the conversation, and its tools run; whether it has to be
    /// asked again.
    async fn answered(&mut self, call: Call) -> Result<bool, LoopStatus> {
        let calls: Vec<ToolCall> = call.response.tool_calls().cloned().collect();
        let is_refused = call.response.finish == FinishReason::ContentFilter;
        let is_empty = call.response.content.is_empty();
        self.end.finish = Some(call.response.finish.clone());
        if is_empty {
            let loop_id = self.end.loop_id.clone();
            self.tx.send(AgentEvent::MessageAborted { loop_id });
        } else {
            self.hear(call.response.into_message());
        }
        match calls.is_empty() {
            true if is_refused => Err(LoopStatus::Failed(LoopFailure {
                kind: ErrorKind::ContentFilter,
                message: "the provider cut the answer off for its content".to_owned(),
            })),
            true => Ok(false),
            false => self.run_tools(calls).await.map(|()| true),
        }
    }

    /// The whole conversation, or what the model's window has room for.
    fn request(&mut self) -> Request {
        let said = self.context.messages.iter().filter_map(AgentMessage::as_llm);
        let system = &self.context.system_prompt;
        let view = match &self.config.context_config {
            None => None,
            Some(limits) => {
                let beside =
                    compaction::tokens_of_text(system) + compaction::tokens_of(&self.tools);
                compaction::compact(said.clone(), beside, limits)
            }
        };
        let messages = match view {
            None => said.cloned().collect(),
            Some(compacted) => {
                self.end.compactions += 1;
                let loop_id = self.end.loop_id.clone();
                if !compacted.fits {
                    let text = format!(
                        "the conversation has about {} tokens even when compacted; the limit is {}",
                        compacted.sent_tokens, compacted.budget
                    );
                    self.tx.send(AgentEvent::ProgressMessage { loop_id: loop_id.clone(), text });
                }
                self.tx.send(AgentEvent::Compaction {
                    loop_id,
                    messages: compacted.before,
                    sent_messages: compacted.messages.len(),
                    tokens: compacted.tokens,
                    sent_tokens: compacted.sent_tokens,
                });
                compacted.messages
            }
        };
        let system = (!system.is_empty()).then(|| Message::system(system.as_str()));
        Request {
            messages: system.into_iter().chain(messages).collect(),
            tools: self.tools.clone(),
            ..self.config.request.clone()
        }
    }

    async fn ask(&self, request: Request) -> Result<Result<Call, CallError>, Interrupted> {
        let loop_id = &self.end.loop_id;
        let behalf = &self.config.behalf;
        let on_delta = |delta: &Delta| {
            let delta = delta.clone();
            self.tx.send(AgentEvent::MessageUpdate { loop_id: loop_id.clone(), delta });
        };
        let on_retry = |retry: &Retry<'_>| {
            let reason = format!("{}: {}", retry.model, in_words(retry.failure));
            *self.last_retry.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
            let delay_ms = u64::try_from(retry.pause.as_millis()).unwrap_or(u64::MAX);
            self.tx.send(AgentEvent::Retry { loop_id: loop_id.clone(), delay_ms, reason });
        };
        let context = CallContext {
            run: behalf.run,
            sample: &behalf.sample,
            trial: sample_of(behalf.trial, loop_id),
            ordinals: self.ordinals.clone(),
            cancel: self.cancel.clone(),
            stop: behalf.stop.clone(),
            on_retry: Some(&on_retry),
            on_delta: Some(&on_delta),
        };
        let work = self.config.client.call(&self.config.model, request, &context);
        within(self.deadline, &self.cancel, work).await
    }

    fn account(&mut self, call: &Call) {
        self.end.usage += call.response.usage;
        self.end.cost = match (self.end.cost, call.cost) {
            (Some(sum), Some(cost)) => Some(sum.saturating_add(cost)),
            _ => None,
        };
        self.end.cached_turns += u32::from(call.cached);
        self.end.retries = self.end.retries.saturating_add(call.retries);
        self.end.latency += call.latency;
    }

    /// Runs the tools that the model wants. Every call gets an answer, even when there is no time
    /// for it, so that the conversation can go on some day.
    async fn run_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), LoopStatus> {
        let mut results = Results::of(calls);
        let interrupted = match self.limit() {
            // Nobody would ever be told what they found.
            Some(limit) => Some(LoopStatus::LimitReached(limit)),
            None => {
                let started = Instant::now();
                let work =
                    self.toolbox.run(&mut results, &self.end.loop_id, &self.tx, &self.cancel);
                let ran = within(self.deadline, &self.cancel, work).await;
                self.end.tool_time += started.elapsed();
                ran.err().map(LoopStatus::from)
            }
        };
        let missing = match &interrupted {
            Some(LoopStatus::LimitReached(limit)) => format!("not finished: {limit}"),
            _ => "not finished: cancelled".to_owned(),
        };
        results.settle_rest(&missing, &self.end.loop_id, &self.tx);
        let broken = results.machine_trouble();
        for message in results.into_messages() {
            let (loop_id, role) = (self.end.loop_id.clone(), Role::Tool);
            self.tx.send(AgentEvent::MessageStart { loop_id, role });
            self.hear(message);
        }
        match broken.map(LoopStatus::Failed).or(interrupted) {
            Some(status) => Err(status),
            None => Ok(()),
        }
    }

    /// A message of the model or of a tool becomes part of the conversation.
    fn hear(&mut self, message: Message) {
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::MessageEnd { loop_id, message: Arc::new(message.clone()) });
        self.context.messages.push(message.clone().into());
        self.end.new_messages.push(message.into());
    }

    fn tell(&self, prompt: &AgentMessage) {
        let Some(message) = prompt.as_llm() else { return };
        let role = Role::of(message);
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::MessageStart { loop_id: loop_id.clone(), role });
        self.tx.send(AgentEvent::MessageEnd { loop_id, message: Arc::new(message.clone()) });
    }
}

fn failed(error: CallError, going: &mut Going<'_>) -> LoopStatus {
    going.end.retries = going.end.retries.saturating_add(error.retries);
    match error.failure.kind {
        ErrorKind::Cancelled => LoopStatus::Cancelled,
        kind => LoopStatus::Failed(LoopFailure { kind, message: in_words(&error.failure) }),
    }
}

/// The provider's words, with the status where there is one.
fn in_words(failure: &Failure) -> String {
    match failure.status {
        Some(status) => format!("{status}: {failure}"),
        None => failure.to_string(),
    }
}

/// Each loop of a session is a sample of its own, and the first is that of the trial. The factor is
/// odd and large, so that the numbers of other trials are far away.
fn sample_of(trial: u32, loop_id: &LoopId) -> u32 {
    trial.wrapping_add(loop_id.number().wrapping_sub(1).wrapping_mul(0x9E37_79B1))
}

/// Waits for work, but not beyond the deadline and not when it was cancelled.
async fn within<T>(
    deadline: Option<Instant>,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, Interrupted> {
    let time_is_up = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Interrupted::Cancelled),
        done = work => Ok(done),
        () = time_is_up => Err(Interrupted::TimeIsUp),
    }
}
