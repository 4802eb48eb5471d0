//! From `[select]` and the command line to a search that can begin. Nothing is called.

use super::prices::{first_round, per_call};
use crate::Error;
use crate::resume::ResumeState;
use crate::run::{Run, RunConfig};
use crate::warnings::needs_prices;
use bakeoff_core::NanoDollars;
use bakeoff_select::{
    Budget, Evidence, Hint, Hints, Objective, OptionsError, Role, Selector, SelectorOptions, Space,
    Step, named,
};
use bakeoff_suite::{Artifacts, SelectPlan, Suite};
use std::time::Duration;

/// The method whose proposals come from a model.
pub(super) const PROPOSALS: &str = "lm_proposal";

/// What the command line says instead of `[select]`.
#[derive(Debug, Clone, Default)]
pub struct SearchOverrides {
    /// Who searches.
    pub method: Option<String>,
    /// How sure to be.
    pub confidence: Option<f64>,
    /// Money that the search may take.
    pub max_cost: Option<NanoDollars>,
    /// Cells that it may take.
    pub max_cells: Option<u64>,
    /// Time that it may take.
    pub deadline: Option<Duration>,
}

/// A search that is about to begin.
#[derive(Debug)]
pub struct Search {
    pub(super) run: Run,
    pub(super) space: Space,
    pub(super) method: String,
    pub(super) options: SelectorOptions,
    pub(super) budget: Budget,
}

impl Search {
    /// Puts a suite whose targets are the combinations, and the command line, together. Makes no call
    /// and writes nothing.
    ///
    /// # Errors
    ///
    /// What was asked for makes no sense.
    pub fn new(
        mut suite: Suite,
        config: RunConfig,
        overrides: &SearchOverrides,
    ) -> Result<Search, Error> {
        // There are very many trials, and the journal has all of them.
        suite.settings.artifacts = Artifacts::None;
        let run = Run::new(suite, config)?;
        let Some(plan) = &run.suite.select else {
            return Err(usage("the suite was read without its combinations".to_owned(), ""));
        };
        // All cases come before the second trial of any.
        let space = space(plan, run.chosen.ids.len(), run.measure.trials as usize)?;
        let method = overrides.method.clone().unwrap_or_else(|| plan.method.clone());
        let objective = objective(plan);
        let options = options(&run, plan, &method, overrides, objective);
        let money = overrides.max_cost.or(plan.budget.cost).or(run.suite.settings.budget.cost);
        let budget = Budget {
            cost: money.map(NanoDollars::as_dollars),
            cells: overrides.max_cells.or(plan.budget.cells).map(|cells| cells as usize),
            time: overrides.deadline.or(plan.budget.time).or(run.suite.settings.budget.time),
        };
        let counts_money =
            objective.cost_weight > 0.0 || objective.max_cost.is_some() || options.within.is_some();
        if money.is_some() || counts_money {
            needs_prices(&run.suite)?;
        }
        if method == "threshold_se" && options.threshold.is_none() {
            let message = "`threshold_se` needs a `threshold`: the mean score that is good enough";
            return Err(usage(message.to_owned(), "add `threshold = 0.75` under [select]"));
        }
        let search = Search { run, space, method, options, budget };
        search.check()?;
        Ok(search)
    }

    /// Returns the run that makes the trials.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Continues an earlier search instead of starting a new one.
    #[must_use]
    pub fn resume_from(self, state: ResumeState) -> Search {
        Search { run: self.run.resume_from(state), ..self }
    }

    /// What there is to choose from.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Who searches.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Finds what is wrong before anything is paid for.
    fn check(&self) -> Result<(), Error> {
        if self.method == PROPOSALS {
            let plan = self.run.suite.select.as_ref();
            if plan.is_none_or(|plan| plan.proposer.is_none()) {
                let message = "`lm_proposal` needs a `proposer`: the model that proposes";
                let hint = "add `proposer = \"openai/gpt-4o-mini\"` under [select]";
                return Err(usage(message.to_owned(), hint));
            }
            // The rest of its options can be checked all the same.
            let options = SelectorOptions { proposals: Some(Vec::new()), ..self.options.clone() };
            return match named(&self.method, &self.space, &options) {
                Ok(_) | Err(OptionsError::NoProposals { .. }) => Ok(()),
                Err(error) => Err(refused(&error)),
            };
        }
        let mut selector = self.selector()?;
        let Step::Evaluate(round) =
            selector.next(&Evidence::new(&self.space, self.options.objective))
        else {
            return Ok(());
        };
        let (method, cells) = (&self.method, round.cells.len());
        if let Some(most) = self.budget.cells.filter(|most| *most < cells) {
            return Err(usage(
                format!(
                    "too few cells, {most}, for the first round of `{method}`, which takes \
                     {cells}: {} combinations, {} cases each at most",
                    self.space.combos(),
                    round.batch
                ),
                &format!("`--max-cells {cells}` or more, or fewer candidates under [select.roles]"),
            ));
        }
        if let Some(most) = self.budget.cost {
            let least = first_round(&self.run.suite, &round.cells);
            if most < least {
                return Err(usage(
                    format!(
                        "${most} is too little for the first round of `{method}`: the first \
                         prompts of its {cells} cells alone cost about ${least:.6}"
                    ),
                    &format!(
                        "`--max-cost {:.6}` or more, or fewer candidates under [select.roles]",
                        2.0 * least
                    ),
                ));
            }
        }
        Ok(())
    }

    fn selector(&self) -> Result<Box<dyn Selector>, Error> {
        named(&self.method, &self.space, &self.options).map_err(|error| refused(&error))
    }
}

fn usage(message: String, hint: &str) -> Error {
    Error::Usage { code: None, message, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// What is wrong with the options, and where they are written.
fn refused(error: &OptionsError) -> Error {
    let hint = match error {
        OptionsError::Unknown { .. } => "name one of them with `method` under [select] or --method",
        OptionsError::Unused { .. } => "take the option out of [select], or name another `method`",
        _ => "change it under [select] or on the command line",
    };
    usage(error.to_string(), hint)
}

fn space(plan: &SelectPlan, cases: usize, trials: usize) -> Result<Space, Error> {
    let roles = plan
        .roles
        .iter()
        .map(|(name, candidates)| Role { name: name.clone(), candidates: candidates.clone() });
    Space::full(roles.collect(), cases * trials)
        .map(|space| space.repeating(cases))
        .map_err(|error| usage(error.to_string(), "candidates stand under [select.roles]"))
}

fn objective(plan: &SelectPlan) -> Objective {
    Objective {
        cost_weight: plan.objective.cost_weight.unwrap_or(0.0),
        latency_weight: plan.objective.latency_weight.unwrap_or(0.0),
        max_cost: plan.objective.max_task_usd,
    }
}

fn options(
    run: &Run,
    plan: &SelectPlan,
    method: &str,
    overrides: &SearchOverrides,
    objective: Objective,
) -> SelectorOptions {
    // Prices tell which neighbours are cheaper.
    let hints = (method == "hill_climbing").then(|| {
        let hint = |price| Hint { quality_rank: None, price };
        let prices = per_call(&run.suite).into_iter();
        Hints(prices.map(|role| role.into_iter().map(hint).collect()).collect())
    });
    let options = SelectorOptions {
        seed: run.config.seed,
        objective,
        within: plan.objective.cheapest_within,
        confidence: plan.confidence,
        epsilon: plan.epsilon,
        hints,
        ..plan.options.clone()
    };
    // What the suite says is for its own method; what the command line says is meant.
    let options = if method == plan.method { options } else { options.only_of(method) };
    SelectorOptions { confidence: overrides.confidence.or(options.confidence), ..options }
}
