//! A run of a suite.

use crate::Error;
use crate::active_run::ActiveRun;
use crate::aggregate::RunCriteria;
use crate::budget::{budget_warning, check_prices};
use crate::case_selection::{CaseSelection, select_cases};
use crate::config::RunConfig;
use crate::dispatch::Dispatcher;
use crate::folder::RunFolder;
use crate::lane::LaneRules;
use crate::resume::ResumeState;
use crate::run_file::RunFile;
use crate::stopper::Stopper;
use crate::trial_plan::TrialPlan;
use crate::warnings::{check_roles, start_warnings, stopped_target_warnings};
use bakeoff_core::{Event, ExitCode, RunId, RunPlan, Summary, TargetName, TrialKey, Verdict};
use bakeoff_stats::Threshold;
use bakeoff_suite::Suite;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A run that has not started.
#[derive(Debug)]
pub struct Run {
    pub(crate) suite: Arc<Suite>,
    pub(crate) config: RunConfig,
    pub(crate) criteria: RunCriteria,
    pub(crate) cases: Arc<CaseSelection>,
    pub(crate) resume: Option<ResumeState>,
}

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Its folder.
    pub folder: RunFolder,
    /// Its summary.
    pub summary: Summary,
    /// Exit code of the process.
    pub exit_code: ExitCode,
}

impl Run {
    /// Combines a suite and the settings of the command line. Makes no call and writes nothing.
    ///
    /// # Errors
    ///
    /// When the settings do not fit the suite.
    pub fn new(mut suite: Suite, config: RunConfig) -> Result<Run, Error> {
        config.apply_to(&mut suite)?;
        let cases = select_cases(&suite, &config.case_filter())?;
        check_prices(&suite, &suite.settings.budget)?;
        let criteria = criteria(&suite, &config, &cases);
        Ok(Run { suite: Arc::new(suite), config, criteria, cases: Arc::new(cases), resume: None })
    }

    /// Continues an earlier run instead of starting a new one.
    #[must_use]
    pub fn resume_from(self, state: ResumeState) -> Run {
        Run { resume: Some(state), ..self }
    }

    /// Returns the suite, with the settings of the command line applied.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// Returns the threshold of the command line, which replaces those of all cases.
    pub fn fixed_threshold(&self) -> Option<Threshold> {
        self.config.threshold.filter(|_| self.config.has_fixed_threshold())
    }

    /// Returns the criteria of the verdict.
    pub fn criteria(&self) -> &RunCriteria {
        &self.criteria
    }

    /// Returns the plan of the run.
    pub fn plan(&self) -> RunPlan {
        let plan = &self.criteria.plan;
        let targets: Vec<TargetName> =
            self.criteria.targets.iter().map(|(name, _)| name.clone()).collect();
        RunPlan {
            suite: self.suite.name.clone(),
            cases: plan.cases() as u64,
            trials: plan.default().trials,
            total: plan.total() as u64 * targets.len() as u64,
            seed: self.config.seed,
            targets,
        }
    }

    /// Returns the contents of `run.json` for a run with this plan.
    pub fn file(&self, run_id: RunId, started_at: String) -> RunFile {
        RunFile::new(&self.suite, &self.config, &self.criteria, run_id, started_at)
    }

    /// Executes all trials. Passes all events to `listen`, in order.
    ///
    /// # Errors
    ///
    /// When results cannot be written; results that have been written stay.
    // Boxed, like the other entry points of this crate, so that it is compiled in this crate alone.
    pub fn execute<'a>(
        self,
        stopper: &'a Stopper,
        listen: &'a mut (dyn FnMut(&Event) + Send),
    ) -> BoxFuture<'a, Result<FinishedRun, Error>> {
        Box::pin(self.execute_trials(stopper, listen))
    }

    async fn execute_trials(
        mut self,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<FinishedRun, Error> {
        check_roles(&self.suite)?;
        let budget = self.suite.settings.budget;
        let (mut active, finished) = ActiveRun::start(&mut self, &budget, stopper, listen)?;
        for warning in start_warnings(&self, finished.len() as u64) {
            active.recorder.record(&warning)?;
        }
        let (cases, context) = (Arc::clone(&self.cases), Arc::clone(&active.context));
        let client = Arc::clone(&context.client);
        let mut dispatcher = Dispatcher::new(&self.suite, cases, &self.lane_rules(), context)
            .map_err(Error::Cases)?;
        dispatcher.restore(finished);
        let mut pool_timer = active.pool_timer();
        // After the first problem no trial starts, but running trials are paid for and recorded.
        let mut problem = Ok(());
        let mut exhausted_budget = None;
        loop {
            let ActiveRun { recorder, trial_events, started, .. } = &mut active;
            exhausted_budget = exhausted_budget
                .or_else(|| budget_warning(client.budget(), &budget, started.elapsed()));
            if problem.is_ok() && exhausted_budget.is_none() && !stopper.is_stopped() {
                let on_start =
                    |key: &TrialKey| recorder.emit(&Event::TrialStarted { key: key.clone() });
                problem = dispatcher.start_trials(on_start).map_err(Error::Cases);
            }
            if dispatcher.is_idle() {
                break;
            }
            tokio::select! {
                outcomes = dispatcher.next_outcomes() => {
                    problem = problem.and(recorder.record_trials(outcomes));
                }
                Some(event) = trial_events.recv() => {
                    problem = problem.and(recorder.record_trial_event(&event));
                }
                _ = pool_timer.tick() => active.on_pool_timer(),
            }
        }
        let last: Vec<Event> =
            exhausted_budget.into_iter().chain(stopped_target_warnings(&dispatcher)).collect();
        drop((dispatcher, client));
        active.finish(&self, problem, &last, stopper)
    }

    fn lane_rules(&self) -> LaneRules {
        let settings = &self.suite.settings;
        LaneRules {
            cases: Arc::new(self.criteria.case_rules()),
            target: Arc::new(self.criteria.target_rule()),
            lookahead: settings.lookahead,
            max_error_rate: settings.max_error_rate,
        }
    }
}

fn criteria(suite: &Suite, config: &RunConfig, cases: &CaseSelection) -> RunCriteria {
    let suite_threshold = config.suite_threshold.or(config.ci.then_some(suite.settings.threshold));
    // If no selected target gates, all of them decide the verdict.
    let none_gates = suite.targets.iter().all(|target| !target.gate);
    RunCriteria {
        targets: suite
            .targets
            .iter()
            .map(|target| (target.name.clone(), target.gate || none_gates))
            .collect(),
        cases: Arc::clone(&cases.ids),
        plan: TrialPlan::of_suite(suite, config, cases),
        suite_threshold,
        is_ci_rule: config.ci && config.suite_threshold.is_none(),
        min_score: suite.settings.min_score,
        has_planned_rates: suite.project.is_some(),
        early_stop: suite.settings.early_stop,
        alpha: suite.settings.alpha,
        seed: config.seed,
    }
}

/// Returns the exit code of a run with that summary.
pub(crate) fn exit_code(summary: &Summary, stopper: &Stopper) -> ExitCode {
    let is_incomplete =
        summary.targets.iter().any(|target| target.counted + target.saved < target.total_trials);
    match summary.verdict {
        _ if is_incomplete && stopper.is_stopped() => ExitCode::Interrupted,
        Verdict::Passed => ExitCode::Passed,
        Verdict::Failed => ExitCode::Failed,
        Verdict::Inconclusive => ExitCode::Inconclusive,
    }
}
