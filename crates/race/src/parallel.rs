//! Branches: started, watched and ended.

use crate::error::{BranchFailure, RaceError};
use crate::outcome::{ParallelLoopOutcome, ParallelLoopResult, Selected};
use crate::session::UnfinishedRace;
use crate::strategy::{EvaluationStrategy, Verdict};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopError,
    LoopFailure, LoopId, LoopStatus, agent_loop_with_id, check_loop,
};
use bakeoff_core::{ErrorKind, FinishReason, NanoDollars, Usage};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Runs one prompt through several configs at once and lets a strategy choose.
///
/// Each branch starts from its own copy of the base context and shares the tools. Without prompts,
/// the branches answer the last message of the context.
///
/// # Errors
///
/// When the race cannot begin, nothing was called; otherwise when there is no winner.
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

/// A race that may begin: everything that can be known to be wrong is right.
pub struct Race {
    prompts: Vec<AgentMessage>,
    base: AgentContext,
    configs: Vec<AgentLoopConfig>,
    strategy: Arc<dyn EvaluationStrategy>,
    loop_ids: Vec<LoopId>,
    /// Outcomes by config, as far as branches have ended or were known before.
    outcomes: Vec<Option<ParallelLoopOutcome>>,
    is_resumed: bool,
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
    /// Looks whether the race may begin. Nothing is called.
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
        let mut race = Race::checked(prompts, base_context, configs, strategy, Vec::new())?;
        let session = &race.base.session;
        // Only now, so that a race that cannot begin takes no numbers.
        race.loop_ids =
            race.configs.iter().map(|config| session.next_loop(&config.segment())).collect();
        Ok(race)
    }

    /// Goes on with a race that was interrupted: its branches keep their names, and those that have
    /// ended are not run again.
    ///
    /// # Errors
    ///
    /// As for [`Race::new`], and [`RaceError::Changed`] when these are not the configs that it had.
    pub fn resumed(
        unfinished: UnfinishedRace,
        base_context: AgentContext,
        configs: Vec<AgentLoopConfig>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Race, RaceError> {
        let UnfinishedRace { prompts, loop_ids, ended, .. } = unfinished;
        let had: Vec<&str> = loop_ids.iter().map(LoopId::segment).collect();
        let has: Vec<String> = configs.iter().map(AgentLoopConfig::segment).collect();
        if had != has {
            return Err(RaceError::Changed { had: had.join(", "), has: has.join(", ") });
        }
        let mut race = Race::checked(prompts, base_context, configs, strategy, loop_ids)?;
        race.is_resumed = true;
        for mut outcome in ended {
            // What was written down knows neither the tools nor the session of the caller.
            outcome.context = race.base.clone();
            outcome.original_context_len = race.base.messages.len();
            let said = race.prompts.iter().chain(&outcome.new_messages).cloned();
            outcome.context.messages.extend(said);
            if let Some(place) = race.outcomes.get_mut(outcome.config_index) {
                *place = Some(outcome);
            }
        }
        Ok(race)
    }

    fn checked(
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
                LoopError::NoPrice { .. } => RaceError::Config { index, source },
                common => RaceError::Context(common),
            })?;
        }
        strategy.accepts(&configs)?;
        let outcomes = configs.iter().map(|_| None).collect();
        let is_resumed = false;
        Ok(Race { prompts, base, configs, strategy, loop_ids, outcomes, is_resumed })
    }

    /// What is asked.
    pub fn prompts(&self) -> &[AgentMessage] {
        &self.prompts
    }

    /// Whether it was interrupted before.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Name of the strategy.
    pub fn strategy(&self) -> &str {
        self.strategy.name()
    }

    /// The branches' loops, in the order of the configs.
    pub fn loop_ids(&self) -> &[LoopId] {
        &self.loop_ids
    }

    /// Runs it to its end; `on_end` is told of every branch that has ended, at once.
    ///
    /// # Errors
    ///
    /// [`RaceError::AllFailed`], [`RaceError::NoneAcceptable`], [`RaceError::BadDecision`] and
    /// [`RaceError::Cancelled`].
    pub async fn run(
        mut self,
        tx: EventSender,
        cancel: CancellationToken,
        on_end: &mut (dyn FnMut(&ParallelLoopOutcome) + Send),
    ) -> Result<ParallelLoopResult, RaceError> {
        let session_id = self.base.session.id().to_owned();
        tx.send(AgentEvent::ParallelLoopStart {
            session_id: session_id.clone(),
            loop_ids: self.loop_ids.clone(),
            timestamp: Timestamp::now(),
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
            timestamp: Timestamp::now(),
        });
        ended.map_err(|(error, _)| error)
    }

    async fn run_branches(
        &mut self,
        tx: &EventSender,
        cancel: &CancellationToken,
        on_end: &mut (dyn FnMut(&ParallelLoopOutcome) + Send),
    ) {
        let branches = self.configs.len();
        let stop = cancel.child_token();
        // Dropping the set ends its tasks, so that none outlives the race.
        let mut tasks = JoinSet::new();
        let mut places = HashMap::new();
        let mut started = 0;
        loop {
            let ended: Vec<&ParallelLoopOutcome> = self.outcomes.iter().flatten().collect();
            if self.strategy.early_stop(&ended, branches) {
                stop.cancel();
            }
            let wanted = match stop.is_cancelled() {
                true => started,
                false => self.strategy.wanted(&ended, branches).min(branches),
            };
            while started < wanted {
                if self.outcomes[started].is_none() {
                    let task = tasks.spawn(self.branch(started, tx.clone(), stop.clone()));
                    places.insert(task.id(), (started, Instant::now()));
                }
                started += 1;
            }
            let Some(joined) = tasks.join_next_with_id().await else { break };
            let (task, ended) = match joined {
                Ok((task, ended)) => (task, Ok(ended)),
                Err(broken) => (broken.id(), Err(broken)),
            };
            let Some((place, since)) = places.remove(&task) else { continue };
            let mut outcome = match ended {
                Ok((Ok(end), context)) => self.outcome(place, end, context),
                Ok((Err(error), _)) => {
                    self.broken(place, ErrorKind::InvalidRequest, error.to_string(), since)
                }
                Err(broken) => {
                    let outcome =
                        self.broken(place, ErrorKind::Internal, panic_message(broken), since);
                    tx.send(end_of(&outcome));
                    outcome
                }
            };
            let before = self.outcomes.iter().flatten().count();
            outcome.end_order = u32::try_from(before).ok();
            on_end(&outcome);
            self.outcomes[place] = Some(outcome);
        }
    }

    /// One branch, with a copy of the base context.
    fn branch(
        &self,
        place: usize,
        tx: EventSender,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<LoopEnd, LoopError>, AgentContext)> + Send + 'static {
        let loop_id = self.loop_ids[place].clone();
        let prompts = self.prompts.clone();
        let mut context = self.base.clone();
        let config = self.configs[place].clone();
        async move {
            let end = agent_loop_with_id(loop_id, prompts, &mut context, &config, tx, cancel).await;
            (end, context)
        }
    }

    fn outcome(&self, place: usize, end: LoopEnd, context: AgentContext) -> ParallelLoopOutcome {
        ParallelLoopOutcome {
            config_index: place,
            loop_id: end.loop_id,
            status: end.status,
            context,
            new_messages: end.new_messages,
            usage: end.usage,
            cost: end.cost,
            unaccounted_calls: end.unaccounted_calls,
            end_order: None,
            last_retry: end.last_retry,
            elapsed: end.elapsed,
            original_context_len: self.base.messages.len(),
            finish: end.finish,
        }
    }

    /// A branch that has nothing to show.
    fn without_answer(&self, place: usize, status: LoopStatus) -> ParallelLoopOutcome {
        ParallelLoopOutcome {
            config_index: place,
            loop_id: self.loop_ids[place].clone(),
            status,
            context: self.base.clone(),
            new_messages: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
            unaccounted_calls: 0,
            end_order: None,
            last_retry: None,
            elapsed: Duration::ZERO,
            original_context_len: self.base.messages.len(),
            finish: None,
        }
    }

    fn broken(
        &self,
        place: usize,
        kind: ErrorKind,
        message: String,
        since: Instant,
    ) -> ParallelLoopOutcome {
        let status = LoopStatus::Failed(LoopFailure { kind, message });
        // What it has spent until then is lost with it.
        ParallelLoopOutcome {
            cost: None,
            unaccounted_calls: 1,
            elapsed: since.elapsed(),
            ..self.without_answer(place, status)
        }
    }

    /// Has the strategy choose; the error comes with the tokens of the evaluation.
    async fn decide(
        &mut self,
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> Result<ParallelLoopResult, (RaceError, Usage)> {
        let ended = std::mem::take(&mut self.outcomes);
        let not_started = |place| self.without_answer(place, LoopStatus::Cancelled);
        let mut outcomes: Vec<ParallelLoopOutcome> = ended
            .into_iter()
            .enumerate()
            .map(|(place, outcome)| outcome.unwrap_or_else(|| not_started(place)))
            .collect();
        let mut total_usage = Usage::default();
        outcomes.iter().for_each(|outcome| total_usage += outcome.usage);
        if cancel.is_cancelled() {
            return Err((RaceError::Cancelled { outcomes, total_usage }, Usage::default()));
        }
        if !outcomes.iter().any(ParallelLoopOutcome::is_eligible) {
            let failures = outcomes.iter().map(failure).collect();
            let error = RaceError::AllFailed { failures, outcomes, total_usage };
            return Err((error, Usage::default()));
        }
        let evaluation = self.strategy.evaluate(&self.prompts, &outcomes, tx, cancel.clone());
        let evaluated = tokio::select! {
            biased;
            evaluated = evaluation => Some(evaluated),
            () = long_after(&cancel) => None,
        };
        let usage = evaluated.as_ref().map(|(_, usage)| *usage).unwrap_or_default();
        total_usage += usage;
        let decision = match evaluated {
            Some((decision, _)) if !cancel.is_cancelled() => decision,
            _ => return Err((RaceError::Cancelled { outcomes, total_usage }, usage)),
        };
        let strategy = self.strategy.name().to_owned();
        let mut verdict = Verdict { strategy: strategy.clone(), ..decision.verdict };
        let Some(index) = decision.selected else {
            let verdict = Box::new(verdict);
            return Err((RaceError::NoneAcceptable { verdict, outcomes, total_usage }, usage));
        };
        let trouble = match outcomes.get(index) {
            Some(chosen) => chosen.trouble(),
            None => Some(format!("there are only {}", outcomes.len())),
        };
        if let Some(reason) = trouble {
            let error = RaceError::BadDecision { strategy, index, reason, outcomes, total_usage };
            return Err((error, usage));
        }
        let winner = outcomes.remove(index);
        if winner.finish == Some(FinishReason::Length) {
            verdict.reasons.push("its answer is cut off at the most tokens allowed".to_owned());
        }
        Ok(ParallelLoopResult {
            selected_context: winner.context,
            selected_messages: winner.new_messages,
            selected_index: index,
            selected: Selected {
                loop_id: winner.loop_id,
                usage: winner.usage,
                cost: winner.cost,
                elapsed: winner.elapsed,
                original_context_len: winner.original_context_len,
                finish: winner.finish,
            },
            all_outcomes: outcomes,
            verdict,
            evaluation_usage: usage,
            total_usage,
        })
    }
}

/// How long a strategy may take to end after it was told to.
const GRACE: Duration = Duration::from_secs(5);

/// Some time after it was cancelled: judges end by themselves and tell what they took, and only what
/// does not listen is left alone.
async fn long_after(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

fn failure(outcome: &ParallelLoopOutcome) -> BranchFailure {
    BranchFailure {
        config_index: outcome.config_index,
        loop_id: outcome.loop_id.clone(),
        reason: outcome.trouble().unwrap_or_default(),
    }
}

/// The end that a branch could not tell itself.
fn end_of(outcome: &ParallelLoopOutcome) -> AgentEvent {
    AgentEvent::AgentEnd {
        loop_id: outcome.loop_id.clone(),
        status: outcome.status.clone(),
        usage: outcome.usage,
        cost: outcome.cost,
        timestamp: Timestamp::now(),
    }
}

fn panic_message(broken: JoinError) -> String {
    let Ok(panic) = broken.try_into_panic() else { return "the branch was ended".to_owned() };
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the branch panicked: {}", words.unwrap_or_else(|| "without a word".to_owned()))
}
