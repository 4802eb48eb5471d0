//! The agent loop.

use super::channel::EventSender;
use super::compaction;
use super::config::AgentLoopConfig;
use super::context::{AgentContext, AgentMessage};
use super::end::{LoopEnd, LoopError, LoopFailure, LoopLimit, LoopStatus};
use super::event::{AgentEvent, MessageRole};
use super::session::LoopId;
use super::tool::Tool;
use super::toolbox::{ToolResults, Toolbox};
use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, Request, ToolCall, ToolDefinition, Usage,
    estimate_tokens,
};
use bakeoff_llm::{Call, CallContext, CallError, Delta, Failure, Ordinals, Retry};
use chrono::Utc;
use futures_util::future::BoxFuture;
use serde_json::Map;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Adds prompts to the context and calls the model until it responds without tool calls.
///
/// # Errors
///
/// The loop cannot start. Later failures are reported in [`LoopEnd::status`].
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
    agent_loop_with_id(loop_id, prompts, context, config, tx, cancel).await
}

/// Runs a loop that responds to the last message of the context.
///
/// # Errors
///
/// The context is empty or ends with a model message, and as for [`agent_loop`].
pub async fn agent_loop_continue(
    context: &mut AgentContext,
    config: &AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<LoopEnd, LoopError> {
    check_context(context)?;
    let loop_id = context.session.next_loop(&config.segment());
    agent_loop_with_id(loop_id, Vec::new(), context, config, tx, cancel).await
}

/// Checks whether a loop can start, without making a call. Without prompts, the loop continues the context.
///
/// # Errors
///
/// Any [`LoopError`] except [`LoopError::NoPrompt`].
pub fn check_loop(
    prompts: &[AgentMessage],
    context: &AgentContext,
    config: &AgentLoopConfig,
) -> Result<(), LoopError> {
    build_toolbox(prompts, context, config).map(drop)
}

fn build_toolbox(
    prompts: &[AgentMessage],
    context: &AgentContext,
    config: &AgentLoopConfig,
) -> Result<Toolbox, LoopError> {
    if prompts.is_empty() {
        check_context(context)?;
        if config.prompt_template.is_some() {
            return Err(LoopError::NoPromptForTemplate);
        }
    }
    render_prompts(prompts, config)?;
    if config.limits.max_cost.is_some() && !config.model.is_priced() {
        return Err(LoopError::NoPrice { model: config.model.name().to_owned() });
    }
    Toolbox::new(tools(context, config), config.tool_timeout)
}

/// Returns the tools that the model may call.
fn tools<'a>(context: &'a AgentContext, config: &'a AgentLoopConfig) -> &'a [Arc<dyn Tool>] {
    config.tools.as_deref().unwrap_or(&context.tools)
}

/// Returns the prompts that the config sends in its own wording; `None` for those that are sent unchanged.
fn render_prompts(
    prompts: &[AgentMessage],
    config: &AgentLoopConfig,
) -> Result<Vec<Option<Message>>, LoopError> {
    let Some(template) = &config.prompt_template else { return Ok(Vec::new()) };
    let rendered = prompts.iter().map(|prompt| template.apply(prompt));
    rendered.collect::<Result<_, _>>().map_err(|reason| LoopError::Template { reason })
}

/// Checks whether a context can be continued.
fn check_context(context: &AgentContext) -> Result<(), LoopError> {
    if !context.messages.iter().any(|message| message.as_llm().is_some()) {
        return Err(LoopError::EmptyContext);
    }
    if context.ends_on_assistant() {
        return Err(LoopError::EndsOnAssistant);
    }
    Ok(())
}

/// Runs a loop with an id that was assigned before. Without prompts, it continues the context.
///
/// # Errors
///
/// As for [`agent_loop`] and [`agent_loop_continue`].
// Boxed, like the other entry points of this crate: a future that is not boxed is compiled again in every crate
// that awaits it.
pub fn agent_loop_with_id<'a>(
    loop_id: LoopId,
    prompts: Vec<AgentMessage>,
    context: &'a mut AgentContext,
    config: &'a AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> BoxFuture<'a, Result<LoopEnd, LoopError>> {
    Box::pin(run_loop(loop_id, prompts, context, config, tx, cancel))
}

async fn run_loop(
    loop_id: LoopId,
    prompts: Vec<AgentMessage>,
    context: &mut AgentContext,
    config: &AgentLoopConfig,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<LoopEnd, LoopError> {
    let toolbox = build_toolbox(&prompts, context, config)?;
    let rendered = render_prompts(&prompts, config)?;
    let started = Instant::now();
    tx.send(AgentEvent::AgentStart {
        loop_id: loop_id.clone(),
        session_id: context.session.id().to_owned(),
        model: config.model.name().to_owned(),
        timestamp: Utc::now(),
    });
    let tools = tools(context, config).iter().map(|tool| tool.definition().clone()).collect();
    let mut state = LoopState {
        deadline: started.checked_add(config.limits.max_time),
        end: LoopEnd::new(loop_id),
        first_prompt: context.messages.len(),
        rendered,
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
        state.context.messages.push(prompt);
        state.emit_prompt(state.context.messages.len() - 1);
    }
    let status = state.run().await;
    let LoopState { mut end, tx, last_retry, .. } = state;
    end.last_retry = last_retry.into_inner().unwrap_or_else(PoisonError::into_inner);
    end.status = status;
    end.elapsed = started.elapsed();
    tx.send(AgentEvent::AgentEnd {
        loop_id: end.loop_id.clone(),
        status: end.status.clone(),
        usage: end.usage,
        cost: end.cost,
        timestamp: Utc::now(),
    });
    Ok(end)
}

/// State of a running loop.
struct LoopState<'a> {
    context: &'a mut AgentContext,
    /// Index of the first prompt in the context.
    first_prompt: usize,
    /// Prompts in the wording of the config; `None` for those that are sent unchanged.
    rendered: Vec<Option<Message>>,
    config: &'a AgentLoopConfig,
    toolbox: Toolbox,
    tools: Vec<ToolDefinition>,
    ordinals: Ordinals,
    last_retry: Mutex<Option<String>>,
    tx: EventSender,
    cancel: CancellationToken,
    /// `None` if the time limit does not fit the clock.
    deadline: Option<Instant>,
    end: LoopEnd,
}

/// Why a wait ended early.
enum Interruption {
    Cancelled,
    TimedOut,
}

impl From<Interruption> for LoopStatus {
    fn from(interruption: Interruption) -> LoopStatus {
        match interruption {
            Interruption::Cancelled => LoopStatus::Cancelled,
            Interruption::TimedOut => LoopStatus::LimitReached(LoopLimit::Time),
        }
    }
}

impl LoopState<'_> {
    async fn run(&mut self) -> LoopStatus {
        loop {
            if self.cancel.is_cancelled() {
                return LoopStatus::Cancelled;
            }
            if let Some(limit) = self.reached_limit() {
                return LoopStatus::LimitReached(limit);
            }
            match self.run_turn().await {
                Ok(true) => {}
                Ok(false) => return LoopStatus::Completed,
                Err(status) => return status,
            }
        }
    }

    /// Returns the limit that prevents another call.
    fn reached_limit(&self) -> Option<LoopLimit> {
        let limits = &self.config.limits;
        if self.end.turns >= limits.max_turns {
            Some(LoopLimit::Turns)
        } else if self.end.usage.total() >= limits.max_tokens {
            Some(LoopLimit::Tokens)
        } else if limits
            .max_cost
            .is_some_and(|max_cost| self.end.cost.is_none_or(|cost| cost >= max_cost))
        {
            Some(LoopLimit::Cost)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(LoopLimit::Time)
        } else {
            None
        }
    }

    /// Calls the model and runs its tool calls; returns whether another turn is needed.
    async fn run_turn(&mut self) -> Result<bool, LoopStatus> {
        let turn = self.end.turns.saturating_add(1);
        self.tx.send(AgentEvent::TurnStart { loop_id: self.end.loop_id.clone(), turn });
        let (usage, extra, result) = match self.call_model().await {
            Ok(mut call) => {
                self.end.turns = turn;
                let extra = std::mem::take(&mut call.response.extra);
                (call.response.usage, extra, self.process_response(call).await)
            }
            Err(status) => (Usage::default(), Map::new(), Err(status)),
        };
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::TurnEnd { loop_id, turn, usage, extra });
        result
    }

    /// Calls the model and accounts for the call.
    async fn call_model(&mut self) -> Result<Call, LoopStatus> {
        let loop_id = self.end.loop_id.clone();
        let request = self.build_request();
        let role = MessageRole::Assistant;
        self.tx.send(AgentEvent::MessageStart { loop_id: loop_id.clone(), role });
        let status = match self.send(request).await {
            Ok(Ok(call)) => {
                self.account(&call);
                return Ok(call);
            }
            Ok(Err(error)) => self.failed_status(&error),
            Err(interruption) => interruption.into(),
        };
        if !matches!(status, LoopStatus::Failed(_)) {
            // The request may have been in flight, and the provider may charge for it.
            self.end.unaccounted_calls += 1;
        }
        self.tx.send(AgentEvent::MessageAborted { loop_id });
        Err(status)
    }

    /// Adds the response to the conversation and runs its tool calls; returns whether another turn is needed.
    async fn process_response(&mut self, call: Call) -> Result<bool, LoopStatus> {
        let calls: Vec<ToolCall> = call.response.tool_calls().cloned().collect();
        let is_filtered = call.response.finish == FinishReason::ContentFilter;
        let is_empty = call.response.content.is_empty();
        self.end.finish = Some(call.response.finish.clone());
        if is_empty {
            let loop_id = self.end.loop_id.clone();
            self.tx.send(AgentEvent::MessageAborted { loop_id });
        } else {
            self.add_message(call.response.into_message());
        }
        match calls.is_empty() {
            true if is_filtered => Err(LoopStatus::Failed(LoopFailure {
                kind: ErrorKind::ContentFilter,
                message: "the content filter of the provider stopped the response".to_owned(),
            })),
            true => Ok(false),
            false => self.run_tools(calls).await.map(|()| true),
        }
    }

    /// Builds a request with the whole conversation, or with a compacted one.
    fn build_request(&mut self) -> Request {
        let indices = 0..self.context.messages.len();
        let history = indices.filter_map(|index| self.sent_message(index));
        let system = self.config.system_prompt.as_ref().unwrap_or(&self.context.system_prompt);
        let view = match &self.config.context_config {
            None => None,
            Some(limits) => {
                let fixed_tokens = estimate_tokens(system) + compaction::tokens_of(&self.tools);
                compaction::compact(history.clone(), fixed_tokens, limits)
            }
        };
        let messages = match view {
            None => history.cloned().collect(),
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

    async fn send(&self, request: Request) -> Result<Result<Call, CallError>, Interruption> {
        let loop_id = &self.end.loop_id;
        let scope = &self.config.scope;
        let on_delta = |delta: &Delta| {
            let delta = delta.clone();
            self.tx.send(AgentEvent::MessageUpdate { loop_id: loop_id.clone(), delta });
        };
        let on_retry = |retry: &Retry<'_>| {
            let reason = format!("{}: {}", retry.model, describe(retry.failure));
            *self.last_retry.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
            let delay_ms = u64::try_from(retry.pause.as_millis()).unwrap_or(u64::MAX);
            self.tx.send(AgentEvent::Retry { loop_id: loop_id.clone(), delay_ms, reason });
        };
        let context = CallContext::default()
            .run(scope.run)
            .sample(&scope.sample)
            .trial(sample_number(scope.trial, loop_id))
            .ordinals(self.ordinals.clone())
            .cancel(self.cancel.clone())
            .stop(scope.stop.clone())
            .on_retry(&on_retry)
            .on_delta(&on_delta);
        let work = self.config.client.call(&self.config.model, request, &context);
        interruptible(self.deadline, &self.cancel, work).await
    }

    fn failed_status(&mut self, error: &CallError) -> LoopStatus {
        self.end.retries = self.end.retries.saturating_add(error.retries);
        match error.failure.kind {
            ErrorKind::Cancelled => LoopStatus::Cancelled,
            kind => LoopStatus::Failed(LoopFailure { kind, message: describe(&error.failure) }),
        }
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

    /// Runs the tool calls of a response. Every call gets a result, even if a limit is reached, so that the
    /// conversation can be continued.
    async fn run_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), LoopStatus> {
        // The message with these calls is part of the new messages already.
        let earlier_calls = tool_calls(&self.end.new_messages) - calls.len();
        let mut results = ToolResults::new(calls);
        let interruption = match self.reached_limit() {
            // No further call would use the results.
            Some(limit) => Some(LoopStatus::LimitReached(limit)),
            None => {
                let started = Instant::now();
                let work =
                    self.toolbox.run(&mut results, &self.end.loop_id, &self.tx, &self.cancel);
                let result = interruptible(self.deadline, &self.cancel, work).await;
                self.end.tool_time += started.elapsed();
                result.err().map(LoopStatus::from)
            }
        };
        let missing = match &interruption {
            Some(LoopStatus::LimitReached(limit)) => format!("not finished: {limit}"),
            _ => "not finished: cancelled".to_owned(),
        };
        results.record_missing(&missing, &self.end.loop_id, &self.tx);
        let refused = results.refused().iter().map(|index| earlier_calls + index);
        self.end.refused_calls.extend(refused);
        let machine_failure = results.machine_failure();
        for message in results.into_messages() {
            let (loop_id, role) = (self.end.loop_id.clone(), MessageRole::Tool);
            self.tx.send(AgentEvent::MessageStart { loop_id, role });
            self.add_message(message);
        }
        match machine_failure.map(LoopStatus::Failed).or(interruption) {
            Some(status) => Err(status),
            None => Ok(()),
        }
    }

    /// Adds a message of the model or of a tool to the conversation.
    fn add_message(&mut self, message: Message) {
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::MessageEnd { loop_id, message: Arc::new(message.clone()) });
        self.context.messages.push(message.clone().into());
        self.end.new_messages.push(message.into());
    }

    /// Returns a message of the context as it is sent; `None` for application data.
    fn sent_message(&self, index: usize) -> Option<&Message> {
        let prompt = index.checked_sub(self.first_prompt);
        let rendered = prompt.and_then(|prompt| self.rendered.get(prompt)?.as_ref());
        rendered.or_else(|| self.context.messages.get(index)?.as_llm())
    }

    fn emit_prompt(&self, index: usize) {
        let Some(message) = self.sent_message(index) else { return };
        let role = MessageRole::of(message);
        let loop_id = self.end.loop_id.clone();
        self.tx.send(AgentEvent::MessageStart { loop_id: loop_id.clone(), role });
        self.tx.send(AgentEvent::MessageEnd { loop_id, message: Arc::new(message.clone()) });
    }
}

/// Returns the number of tool calls in messages.
fn tool_calls(messages: &[AgentMessage]) -> usize {
    let parts = messages.iter().filter_map(AgentMessage::as_llm).flat_map(Message::content);
    parts.filter(|part| matches!(part, Content::ToolCall(_))).count()
}

/// Formats the message of the provider, with the HTTP status if there is one.
fn describe(failure: &Failure) -> String {
    match failure.status {
        Some(status) => format!("{status}: {failure}"),
        None => failure.to_string(),
    }
}

/// Returns the sample number of a loop. Each loop of a session is a sample of its own; the first has the number
/// of the trial. The factor is odd and large, so that the numbers do not collide with those of other trials.
fn sample_number(trial: u32, loop_id: &LoopId) -> u32 {
    trial.wrapping_add(loop_id.number().wrapping_sub(1).wrapping_mul(0x9E37_79B1))
}

/// Waits for work until the deadline or cancellation.
async fn interruptible<T>(
    deadline: Option<Instant>,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, Interruption> {
    let timeout = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Interruption::Cancelled),
        result = work => Ok(result),
        () = timeout => Err(Interruption::TimedOut),
    }
}
