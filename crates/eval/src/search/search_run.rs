//! A search for the best combination of a suite.

use super::cells::{PriorCells, read_prior_cells};
use super::plan::{self, SearchOverrides, options_error, usage};
use super::prices::first_round_cost;
use super::propose::{PROPOSAL_METHOD, request_proposals};
use super::rounds::run_rounds;
use super::selection_file::SelectionFile;
use crate::Error;
use crate::active_run::ActiveRun;
use crate::budget::check_prices;
use crate::config::RunConfig;
use crate::folder::RunFolder;
use crate::resume::ResumeState;
use crate::run::Run;
use crate::stopper::Stopper;
use crate::warnings::{own_trials_warning, suite_warnings};
use bakeoff_core::{Event, ExitCode, NanoDollars};
use bakeoff_select::{
    Evidence, OnRound, OptionsError, SearchBudget, SearchOutcome, SelectError, SelectorOptions,
    SelectorStep, Space, build_selector,
};
use bakeoff_suite::{Artifacts, Budget, Suite};
use futures_util::future::BoxFuture;

/// A search that has not started.
#[derive(Debug)]
pub struct SearchRun {
    pub(super) run: Run,
    pub(super) space: Space,
    pub(super) method: String,
    pub(super) options: SelectorOptions,
    pub(super) budget: SearchBudget,
}

/// A finished search.
#[derive(Debug)]
pub struct FinishedSearch {
    /// The run's folder.
    pub folder: RunFolder,
    /// The result; an error when no combination could be selected.
    pub found: Result<SelectionFile, SelectError>,
    /// Exit code of the process.
    pub exit_code: ExitCode,
}

impl SearchRun {
    /// Combines a suite, loaded with its combinations as targets, and the settings of the command line.
    /// Makes no call and writes nothing.
    ///
    /// # Errors
    ///
    /// When the settings are invalid or the budget does not cover the first round.
    pub fn new(
        mut suite: Suite,
        mut config: RunConfig,
        overrides: &SearchOverrides,
    ) -> Result<SearchRun, Error> {
        config.parallel = overrides.parallel.or(config.parallel);
        config.search = overrides.clone();
        // A search has very many trials, and the journal has all of them.
        suite.settings.artifacts = Artifacts::None;
        let mut run = Run::new(suite, config)?;
        // Every case has the same weight in a search, so all have the same number of trials.
        run.criteria.plan = run.criteria.plan.with_default_trials();
        let Some(plan) = &run.suite.select else {
            return Err(usage("the suite was loaded without its combinations".to_owned(), ""));
        };
        // The first trials of all cases precede the second trial of any.
        let space =
            plan::space(plan, run.cases.ids.len(), run.criteria.plan.default().trials as usize)?;
        let method = overrides.method.clone().unwrap_or_else(|| plan.method.clone());
        let objective = plan::objective(plan);
        let budget = plan::budget(&run, plan, overrides);
        let mut options = plan::options(&run, plan, &method, overrides, objective);
        options.has_budget = budget != SearchBudget::default();
        let depends_on_cost =
            objective.cost_weight > 0.0 || objective.max_cost.is_some() || options.within.is_some();
        if budget.cost.is_some() || depends_on_cost {
            // Without a limit, known costs are needed all the same.
            let cost = budget.cost.or(Some(NanoDollars(i64::MAX)));
            check_prices(&run.suite, &Budget { cost, ..Budget::default() })?;
        }
        if method == "threshold_se" && options.threshold.is_none() {
            let message = "`threshold_se` needs a `threshold`: the mean score that is good enough";
            return Err(usage(message.to_owned(), "add `threshold = 0.75` under [select]"));
        }
        let search = SearchRun { run, space, method, options, budget };
        search.check()?;
        Ok(search)
    }

    /// Returns the run that executes the trials.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Continues an earlier search instead of starting a new one.
    #[must_use]
    pub fn resume_from(self, state: ResumeState) -> SearchRun {
        SearchRun { run: self.run.resume_from(state), ..self }
    }

    /// Returns the space of combinations and datapoints.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the selection method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Executes the trials that the selector asks for, until it has decided or the budget is exhausted.
    /// Passes all events to `listen`, in order, and all rounds to `on_round`.
    ///
    /// # Errors
    ///
    /// When results cannot be written; results that have been written stay.
    pub fn execute<'a>(
        self,
        stopper: &'a Stopper,
        listen: &'a mut (dyn FnMut(&Event) + Send),
        on_round: OnRound<'a>,
    ) -> BoxFuture<'a, Result<FinishedSearch, Error>> {
        Box::pin(self.execute_rounds(stopper, listen, on_round))
    }

    async fn execute_rounds(
        mut self,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
        on_round: OnRound<'_>,
    ) -> Result<FinishedSearch, Error> {
        let budget = self.expense_budget();
        let (mut active, finished) = ActiveRun::start(&mut self.run, &budget, stopper, listen)?;
        let ignored = own_trials_warning(&self.run.suite);
        for warning in suite_warnings(&self.run.suite).into_iter().chain(ignored) {
            active.recorder.record(&warning)?;
        }
        let mut prior = match finished.is_empty() {
            true => PriorCells::default(),
            false => read_prior_cells(&self.run, &active.folder.journal())?,
        };
        let selector = match request_proposals(&self, &active.context).await {
            Ok(proposals) => {
                // The cost of proposals belongs to no cell.
                prior.lost += proposals.cost;
                self.options.proposals = proposals.proposals.or(self.options.proposals);
                build_selector(&self.method, &self.space, &self.options)
            }
            Err(reason) => Err(OptionsError::NotProposed(reason)),
        };
        let (problem, found) = match selector {
            Ok(mut selector) => {
                run_rounds(&self, selector.as_mut(), prior, &mut active, stopper, on_round).await?
            }
            Err(error) => (Ok(()), Err(SelectError::NothingObserved(error.to_string()))),
        };
        let finished = active.finish(&self.run, problem, &[], stopper)?;
        let exit_code = match &found {
            _ if stopper.is_stopped() => ExitCode::Interrupted,
            Ok(SearchOutcome { stopped: None, .. }) => ExitCode::Passed,
            Err(SelectError::OverCostLimit { all: true, .. }) => ExitCode::Failed,
            Ok(_) | Err(_) => ExitCode::Inconclusive,
        };
        let found = match found {
            Ok(selection) => {
                let file = SelectionFile::new(&self, &finished.folder.id, selection);
                file.write(&finished.folder)?;
                Ok(file)
            }
            Err(error) => Err(error),
        };
        Ok(FinishedSearch { folder: finished.folder, found, exit_code })
    }

    /// Returns the budget as far as it limits calls; the search itself limits cells.
    fn expense_budget(&self) -> Budget {
        let SearchBudget { cost, time, .. } = self.budget;
        Budget { cost, time, tokens: self.run.suite.settings.budget.tokens }
    }

    /// Checks the settings before any cost is incurred.
    fn check(&self) -> Result<(), Error> {
        if self.method == PROPOSAL_METHOD {
            return self.check_proposer();
        }
        let mut selector = build_selector(&self.method, &self.space, &self.options)
            .map_err(|error| options_error(&error))?;
        let SelectorStep::Evaluate(round) =
            selector.next(&Evidence::new(&self.space, self.options.objective))
        else {
            return Ok(());
        };
        let (method, cells) = (&self.method, round.cells.len());
        if let Some(max) = self.budget.cells.filter(|max| *max < cells) {
            return Err(usage(
                format!(
                    "{max} cells are too few for the first round of `{method}`, which needs \
                     {cells}: {} combinations with up to {} cases each",
                    self.space.combos(),
                    round.batch
                ),
                &format!("`--max-cells {cells}` or more, or fewer candidates under [select.roles]"),
            ));
        }
        if let Some(max) = self.budget.cost {
            let cost = first_round_cost(&self.run.suite, &round.cells);
            if max < cost {
                return Err(usage(
                    format!(
                        "${} is too little for the first round of `{method}`: the first \
                         prompts of its {cells} cells alone cost about ${:.6}",
                        max.as_dollars(),
                        cost.as_dollars()
                    ),
                    &format!(
                        "`--max-cost {:.6}` or more, or fewer candidates under [select.roles]",
                        2.0 * cost.as_dollars()
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_proposer(&self) -> Result<(), Error> {
        let plan = self.run.suite.select.as_ref();
        if plan.is_none_or(|plan| plan.proposer.is_none()) {
            let message = "`lm_proposal` needs a `proposer`: the model that proposes";
            let hint = "add `proposer = \"openai/gpt-4o-mini\"` under [select]";
            return Err(usage(message.to_owned(), hint));
        }
        // The other options can be checked without proposals.
        let mut options = self.options.clone();
        options.proposals = Some(Vec::new());
        match build_selector(&self.method, &self.space, &options) {
            Ok(_) | Err(OptionsError::NoProposals { .. }) => Ok(()),
            Err(error) => Err(options_error(&error)),
        }
    }
}
