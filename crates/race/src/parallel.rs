//! Execution of the branches of a race.

use crate::error::{BranchFailure, RaceError};
use crate::outcome::{ParallelLoopOutcome, ParallelLoopResult};
use crate::panics::{self, catch};
use crate::session::UnfinishedRace;
use crate::strategy::{EvaluationStrategy, Verdict};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopError,
    LoopFailure, LoopId, LoopStatus, agent_loop_with_id, check_loop,
};
use bakeoff_core::{ErrorKind, FinishReason, NanoDollars, Usage};
use chrono::Utc;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Runs one prompt through several configs concurrently and lets a strategy select the winner.
///
/// Each branch starts from its own copy of the base context and shares the tools. Without prompts,
/// the branches answer the last message of the context.
///
/// # Errors
///
/// The race cannot start, and no call was made; or it has no winner.
pub async fn agent_loop_parallel(
    prompts: Vec<AgentMessage>,
    base_context: AgentContext,
    configs: Vec<AgentLoopConfig>,
    strategy: Arc<dyn EvaluationStrategy>,
    tx: EventSender,
    cancel: CancellationToken,
) -> Result<ParallelLoopResult, RaceError> {
    Race::new(prompts, base_context, configs, strategy)?.run(tx, cancel, &mut |_| {}).await
}

/// A validated race that has not been run.
pub struct Race {
    prompts: Vec<AgentMessage>,
    base: AgentContext,
    configs: Vec<AgentLoopConfig>,
    strategy: Arc<dyn EvaluationStrategy>,
    loop_ids: Vec<LoopId>,
    /// Outcomes by config, of branches that have ended or were recorded before.
    outcomes: Vec<Option<ParallelLoopOutcome>>,
    is_resumed: bool,
    /// Message of a panic of the strategy while branches ran.
    panic: Option<String>,
}

impl std::fmt::Debug for Race {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Race")
            .field("strategy", &self.strategy.name())
            .field("loop_ids", &self.loop_ids)
            .finish_non_exhaustive()
    }
}

impl Race {
    /// Validates a race. No call is made.
    ///
    /// # Errors
    ///
    /// [`RaceError::NoConfigs`], [`RaceError::Context`], [`RaceError::Config`] and
    /// [`RaceError::Strategy`].
    pub fn new(
        prompts: Vec<AgentMessage>,
        base_context: AgentContext,
        configs: Vec<AgentLoopConfig>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Race, RaceError> {
        let mut race = Race::validate(prompts, base_context, configs, strategy, Vec::new())?;
        let session = &race.base.session;
        // After validation, so that an invalid race uses no loop numbers.
        race.loop_ids =
            race.configs.iter().map(|config| session.next_loop(&config.segment())).collect();
        Ok(race)
    }

    /// Resumes an interrupted race: its branches keep their ids, and branches that have ended do not run
    /// again.
    ///
    /// # Errors
    ///
    /// As for [`Race::new`], and [`RaceError::ConfigsChanged`] if the configs differ from the recorded ones.
    pub fn resume(
        unfinished: UnfinishedRace,
        base_context: AgentContext,
        configs: Vec<AgentLoopConfig>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Race, RaceError> {
        let UnfinishedRace { prompts, loop_ids, ended, .. } = unfinished;
        let recorded: Vec<&str> = loop_ids.iter().map(LoopId::segment).collect();
        let given: Vec<String> = configs.iter().map(AgentLoopConfig::segment).collect();
        if recorded != given {
            return Err(RaceError::ConfigsChanged {
                recorded: recorded.join(", "),
                given: given.join(", "),
            });
        }
        let mut race = Race::validate(prompts, base_context, configs, strategy, loop_ids)?;
        race.is_resumed = true;
        for mut outcome in ended {
            // A recorded outcome has neither the tools nor the session of the caller.
            outcome.context = race.base.clone();
            outcome.original_context_len = race.base.messages.len();
            let messages = race.prompts.iter().chain(&outcome.new_messages).cloned();
            outcome.context.messages.extend(messages);
            if let Some(slot) = race.outcomes.get_mut(outcome.config_index) {
                *slot = Some(outcome);
            }
        }
        Ok(race)
    }

    fn validate(
        prompts: Vec<AgentMessage>,
        base: AgentContext,
        configs: Vec<AgentLoopConfig>,
        strategy: Arc<dyn EvaluationStrategy>,
        loop_ids: Vec<LoopId>,
    ) -> Result<Race, RaceError> {
        if configs.is_empty() {
            return Err(RaceError::NoConfigs);
        }
        for (index, config) in configs.iter().enumerate() {
            check_loop(&prompts, &base, config).map_err(|source| match source {
                LoopError::NoPrompt | LoopError::EmptyContext | LoopError::EndsOnAssistant => {
                    RaceError::Context(source)
                }
                LoopError::BadTool { .. } if config.tools.is_none() => RaceError::Context(source),
                _ => RaceError::Config { index, source },
            })?;
        }
        catch(|| strategy.accepts(&configs)).unwrap_or_else(|message| {
            let strategy = strategy.name().to_owned();
            Err(RaceError::Strategy { strategy, reason: format!("panicked: {message}") })
        })?;
        let outcomes = configs.iter().map(|_| None).collect();
        let (is_resumed, panic) = (false, None);
        Ok(Race { prompts, base, configs, strategy, loop_ids, outcomes, is_resumed, panic })
    }

    /// The prompts.
    pub fn prompts(&self) -> &[AgentMessage] {
        &self.prompts
    }

    /// Whether the race was interrupted before.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Name of the strategy.
    pub fn strategy(&self) -> &str {
        self.strategy.name()
    }

    /// Loop ids of the branches, in config order.
    pub fn loop_ids(&self) -> &[LoopId] {
        &self.loop_ids
    }

    /// Runs the race. `on_end` is called as soon as a branch has ended.
    ///
    /// # Errors
    ///
    /// [`RaceError::AllFailed`], [`RaceError::NoneAcceptable`], [`RaceError::BadDecision`],
    /// [`RaceError::StrategyPanicked`] and [`RaceError::Cancelled`].
    // Boxed, so that it is compiled in this crate alone.
    pub fn run<'a>(
        self,
        tx: EventSender,
        cancel: CancellationToken,
        on_end: &'a mut (dyn FnMut(&ParallelLoopOutcome) + Send),
    ) -> BoxFuture<'a, Result<ParallelLoopResult, RaceError>> {
        Box::pin(self.run_to_verdict(tx, cancel, on_end))
    }

    async fn run_to_verdict(
        mut self,
        tx: EventSender,
        cancel: CancellationToken,
        on_end: &mut (dyn FnMut(&ParallelLoopOutcome) + Send),
    ) -> Result<ParallelLoopResult, RaceError> {
        let session_id = self.base.session.id().to_owned();
        tx.send(AgentEvent::ParallelLoopStart {
            session_id: session_id.clone(),
            loop_ids: self.loop_ids.clone(),
            timestamp: Utc::now(),
        });
        self.run_branches(&tx, &cancel, on_end).await;
        let ended = self.decide(&tx, cancel).await;
        let (winner, evaluation_usage) = match &ended {
            Ok(result) => (Some(result), result.evaluation_usage),
            Err((_, usage)) => (None, *usage),
        };
        tx.send(AgentEvent::ParallelLoopEnd {
            session_id,
            selected_loop_id: winner.map(|result| result.selected.loop_id.clone()),
            selected_config_index: winner.map(|result| result.selected_index),
            evaluation_usage,
            timestamp: Utc::now(),
        });
        ended.map_err(|(error, _)| error)
    }

    async fn run_branches(
        &mut self,
        tx: &EventSender,
        cancel: &CancellationToken,
        on_end: &mut (dyn FnMut(&ParallelLoopOutcome) + Send),
    ) {
        let stop = cancel.child_token();
        // Dropping the set aborts its tasks, so none outlives the race.
        let mut tasks = JoinSet::new();
        let mut running = HashMap::new();
        let mut started = 0;
        loop {
            let required = match self.required_branches() {
                Some(required) if !stop.is_cancelled() => required,
                _ => {
                    stop.cancel();
                    started
                }
            };
            while started < required {
                if self.outcomes[started].is_none() {
                    let task = tasks.spawn(self.run_branch(started, tx.clone(), stop.clone()));
                    running.insert(task.id(), (started, Instant::now()));
                }
                started += 1;
            }
            let Some(joined) = tasks.join_next_with_id().await else { break };
            let (task, ended) = match joined {
                Ok((task, ended)) => (task, Ok(ended)),
                Err(error) => (error.id(), Err(error)),
            };
            let Some((index, since)) = running.remove(&task) else { continue };
            let mut outcome = match ended {
                Ok((Ok(end), context)) => self.outcome(index, end, context),
                Ok((Err(error), _)) => {
                    self.failed(index, ErrorKind::InvalidRequest, error.to_string(), since)
                }
                Err(error) => {
                    let outcome =
                        self.failed(index, ErrorKind::Internal, panic_message(error), since);
                    tx.send(end_event(&outcome));
                    outcome
                }
            };
            let before = self.outcomes.iter().flatten().count();
            outcome.end_order = u32::try_from(before).ok();
            on_end(&outcome);
            self.outcomes[index] = Some(outcome);
        }
    }

    /// Returns how many branches the strategy needs; `None` to cancel those that are running.
    fn required_branches(&mut self) -> Option<usize> {
        if self.panic.is_some() {
            return None;
        }
        let branches = self.configs.len();
        let ended: Vec<&ParallelLoopOutcome> = self.outcomes.iter().flatten().collect();
        let required = catch(|| match self.strategy.early_stop(&ended, branches) {
            true => None,
            false => Some(self.strategy.required_branches(&ended, branches).min(branches)),
        });
        required.unwrap_or_else(|message| {
            self.panic = Some(message);
            None
        })
    }

    /// Runs one branch on a copy of the base context.
    fn run_branch(
        &self,
        index: usize,
        tx: EventSender,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<LoopEnd, LoopError>, AgentContext)> + Send + 'static {
        let loop_id = self.loop_ids[index].clone();
        let prompts = self.prompts.clone();
        let mut context = self.base.clone();
        let config = self.configs[index].clone();
        async move {
            let end = agent_loop_with_id(loop_id, prompts, &mut context, &config, tx, cancel).await;
            (end, context)
        }
    }

    fn outcome(&self, index: usize, end: LoopEnd, context: AgentContext) -> ParallelLoopOutcome {
        ParallelLoopOutcome {
            original_context_len: self.base.messages.len(),
            ..ParallelLoopOutcome::new(index, end, context)
        }
    }

    /// Returns the outcome of a branch without any messages.
    fn empty_outcome(&self, index: usize, status: LoopStatus) -> ParallelLoopOutcome {
        ParallelLoopOutcome {
            config_index: index,
            loop_id: self.loop_ids[index].clone(),
            status,
            context: self.base.clone(),
            new_messages: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
            unaccounted_calls: 0,
            refused_calls: Vec::new(),
            end_order: None,
            last_retry: None,
            elapsed: Duration::ZERO,
            original_context_len: self.base.messages.len(),
            finish: None,
        }
    }

    fn failed(
        &self,
        index: usize,
        kind: ErrorKind,
        message: String,
        since: Instant,
    ) -> ParallelLoopOutcome {
        let status = LoopStatus::Failed(LoopFailure { kind, message });
        // The usage until the failure is lost.
        ParallelLoopOutcome {
            cost: None,
            unaccounted_calls: 1,
            elapsed: since.elapsed(),
            ..self.empty_outcome(index, status)
        }
    }

    /// Runs the strategy. An error carries the tokens of the evaluation.
    async fn decide(
        &mut self,
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> Result<ParallelLoopResult, (RaceError, Usage)> {
        let ended = std::mem::take(&mut self.outcomes);
        let not_started = |index| self.empty_outcome(index, LoopStatus::Cancelled);
        let mut outcomes: Vec<ParallelLoopOutcome> = ended
            .into_iter()
            .enumerate()
            .map(|(index, outcome)| outcome.unwrap_or_else(|| not_started(index)))
            .collect();
        let mut total_usage = Usage::default();
        outcomes.iter().for_each(|outcome| total_usage += outcome.usage);
        if cancel.is_cancelled() {
            return Err((RaceError::Cancelled { outcomes, total_usage }, Usage::default()));
        }
        let strategy = self.strategy.name().to_owned();
        if let Some(message) = self.panic.take() {
            let error = RaceError::StrategyPanicked { strategy, message, outcomes, total_usage };
            return Err((error, Usage::default()));
        }
        if !outcomes.iter().any(ParallelLoopOutcome::is_eligible) {
            let failures = outcomes.iter().map(failure).collect();
            let error = RaceError::AllFailed { failures, outcomes, total_usage };
            return Err((error, Usage::default()));
        }
        // A block, so that a panic before the future exists is caught too.
        let evaluation =
            async { self.strategy.evaluate(&self.prompts, &outcomes, tx, cancel.clone()).await };
        let evaluated = tokio::select! {
            biased;
            evaluated = AssertUnwindSafe(evaluation).catch_unwind() => Some(evaluated),
            () = grace_period_after(&cancel) => None,
        };
        let evaluated = match evaluated.transpose() {
            Ok(evaluated) => evaluated,
            Err(panic) => {
                let message = panics::message(&*panic);
                let error =
                    RaceError::StrategyPanicked { strategy, message, outcomes, total_usage };
                return Err((error, Usage::default()));
            }
        };
        let usage = evaluated.as_ref().map(|(_, usage)| *usage).unwrap_or_default();
        total_usage += usage;
        let decision = match evaluated {
            Some((decision, _)) if !cancel.is_cancelled() => decision,
            _ => return Err((RaceError::Cancelled { outcomes, total_usage }, usage)),
        };
        let mut verdict = Verdict { strategy: strategy.clone(), ..decision.verdict };
        let Some(index) = decision.selected else {
            let verdict = Box::new(verdict);
            return Err((RaceError::NoneAcceptable { verdict, outcomes, total_usage }, usage));
        };
        let failure = match outcomes.get(index) {
            Some(selected) => selected.failure_reason(),
            None => Some(format!("there are only {}", outcomes.len())),
        };
        if let Some(reason) = failure {
            let error = RaceError::BadDecision { strategy, index, reason, outcomes, total_usage };
            return Err((error, usage));
        }
        let winner = outcomes.remove(index);
        if winner.finish == Some(FinishReason::Length) {
            verdict.reasons.push("the answer is cut off at the token limit".to_owned());
        }
        Ok(ParallelLoopResult::new(winner, outcomes, verdict, usage))
    }
}

/// Time that a strategy has to return after cancellation.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Waits until the grace period after cancellation is over. Judges return on cancellation and report their
/// usage; only a strategy that ignores cancellation is dropped.
async fn grace_period_after(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(GRACE_PERIOD).await;
}

fn failure(outcome: &ParallelLoopOutcome) -> BranchFailure {
    BranchFailure {
        config_index: outcome.config_index,
        loop_id: outcome.loop_id.clone(),
        reason: outcome.failure_reason().unwrap_or_default(),
    }
}

/// Returns the end event that a panicked branch did not send.
fn end_event(outcome: &ParallelLoopOutcome) -> AgentEvent {
    AgentEvent::AgentEnd {
        loop_id: outcome.loop_id.clone(),
        status: outcome.status.clone(),
        usage: outcome.usage,
        cost: outcome.cost,
        timestamp: Utc::now(),
    }
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("the branch panicked: {}", panics::message(&*panic)),
        Err(_) => "the branch was aborted".to_owned(),
    }
}
