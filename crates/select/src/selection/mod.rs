//! Search over an async closure.

mod cell;
mod result;
#[cfg(test)]
mod tests;

pub use cell::{CellError, CellFailure, CellScore};
pub use result::{Error, SelectionProgress, SelectionResult};

use crate::budget::SearchBudget;
use crate::budget::SearchLimit;
use crate::combination::Combination;
use crate::driver::{Evaluate, SearchOptions, select_best};
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::search::SearchProgress;
use crate::selectors::{SelectorOptions, build_selector};
use crate::space::{Cell, Role, Space};
use bakeoff_core::NanoDollars;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of failures kept, so memory stays bounded if every cell errors.
const MAX_FAILURES: usize = 100;

/// A search for the best combination, evaluated by an async closure.
///
/// ```
/// use bakeoff_core::NanoDollars;
/// use bakeoff_select::{CellScore, Selection};
///
/// # async fn ask(model: &str, prompt: String) -> Result<(String, NanoDollars), std::io::Error> {
/// #     Ok((format!("{model}: {prompt}"), NanoDollars(250_000)))
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let questions = ["2 + 2", "3 · 7", "10 / 4"];
/// let questions = &questions;
/// let result = Selection::new()
///     .role("planner", ["gpt-a", "gpt-b"])
///     .role("solver", ["x", "y"])
///     .datapoints(questions.len())
///     .max_cost(NanoDollars(1_000_000_000))
///     .seed(7)
///     .run(|combination, datapoint| async move {
///         let question = questions[datapoint].to_owned();
///         // An error makes the cell missing data, not a score of 0.
///         let (plan, plan_cost) = ask(&combination["planner"], question).await?;
///         let (answer, cost) = ask(&combination["solver"], plan).await?;
///         let passed = answer.starts_with("y: gpt-b");
///         Ok(CellScore::from(passed).cost(plan_cost.saturating_add(cost)))
///     })
///     .await?;
/// assert_eq!(result.winner.to_string(), "planner=gpt-b + solver=y");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a selection does nothing until `run`"]
pub struct Selection<'a> {
    roles: Vec<Role>,
    datapoints: usize,
    method: String,
    options: SelectorOptions,
    budget: SearchBudget,
    max_concurrent: usize,
    cancel: CancellationToken,
    on_progress: Option<Box<ProgressCallback<'a>>>,
}

type ProgressCallback<'a> = dyn FnMut(&SelectionProgress) + Send + 'a;

impl Default for Selection<'_> {
    fn default() -> Self {
        Selection {
            roles: Vec::new(),
            datapoints: 0,
            method: crate::SELECTOR_NAMES[0].to_owned(),
            options: SelectorOptions::default(),
            budget: SearchBudget::default(),
            max_concurrent: SearchOptions::default().max_concurrent,
            cancel: CancellationToken::new(),
            on_progress: None,
        }
    }
}

impl<'a> Selection<'a> {
    /// Creates a selection by `auto` without roles, datapoints or budget.
    pub fn new() -> Selection<'a> {
        Selection::default()
    }

    /// Adds a role with its candidates. A combination has one candidate for each role.
    pub fn role<C: Into<String>>(
        mut self,
        name: impl Into<String>,
        candidates: impl IntoIterator<Item = C>,
    ) -> Self {
        let candidates = candidates.into_iter().map(Into::into).collect();
        self.roles.push(Role { name: name.into(), candidates });
        self
    }

    /// Sets the number of datapoints; the closure gets a number from 0.
    pub fn datapoints(self, datapoints: usize) -> Self {
        Selection { datapoints, ..self }
    }

    /// Sets the selector by name, one of [`SELECTOR_NAMES`](crate::SELECTOR_NAMES) [default: `auto`].
    pub fn method(self, name: impl Into<String>) -> Self {
        Selection { method: name.into(), ..self }
    }

    /// Sets all options of the selector, including those with a method of their own here.
    pub fn options(self, options: SelectorOptions) -> Self {
        Selection { options, ..self }
    }

    /// Sets the confidence for `auto` and `strict` [default: 0.95].
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.options.confidence = Some(confidence);
        self
    }

    /// Sets the seed [default: 0]. The same seed and the same scores give the same winner.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Sets the quantity to maximise [default: the score alone].
    pub fn objective(mut self, objective: Objective) -> Self {
        self.options.objective = objective;
        self
    }

    /// Chooses the cheapest combination whose score is at most `margin` below the best, in the unit of the
    /// scores: 0.02 is two percentage points of a pass rate.
    pub fn cheapest_within(mut self, margin: f64) -> Self {
        self.options.within = Some(margin);
        self
    }

    /// Limits the cost of the search.
    ///
    /// Once a limit is reached, running cells finish, and the result is the best combination so far.
    pub fn max_cost(mut self, cost: NanoDollars) -> Self {
        self.budget.cost = Some(cost);
        self
    }

    /// Limits the number of evaluated cells.
    pub fn max_cells(mut self, cells: usize) -> Self {
        self.budget.cells = Some(cells);
        self
    }

    /// Limits the duration of the search.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.budget.time = Some(time);
        self
    }

    /// Sets the maximum number of concurrent cells [default: 20]. It does not change the winner, unless a
    /// budget ends the search.
    pub fn max_concurrent(self, max_concurrent: usize) -> Self {
        Selection { max_concurrent, ..self }
    }

    /// Stops the search when the token is cancelled: no further cell starts, running cells finish, and the
    /// result is the best combination so far. To abort running cells as well, drop the future of
    /// [`run`](Selection::run).
    pub fn cancel(self, token: CancellationToken) -> Self {
        Selection { cancel: token, ..self }
    }

    /// Sets a callback after each round.
    pub fn on_progress(self, callback: impl FnMut(&SelectionProgress) + Send + 'a) -> Self {
        Selection { on_progress: Some(Box::new(callback)), ..self }
    }

    /// Searches for the best combination.
    ///
    /// The closure gets a combination and the number of a datapoint. It is called at most once for each
    /// such cell. An error makes the cell missing data; a combination that errors often can win only if it
    /// also wins with its errors counted as 0.
    ///
    /// The futures run concurrently within the task that awaits this one.
    ///
    /// # Errors
    ///
    /// The roles, datapoints, method or options are invalid, or no combination can be chosen.
    pub async fn run<F, Fut>(self, evaluate: F) -> Result<SelectionResult, Error>
    where
        F: Fn(Combination, usize) -> Fut + Send + Sync,
        Fut: Future<Output = Result<CellScore, CellError>> + Send,
    {
        let space = Arc::new(Space::full(self.roles, self.datapoints)?);
        let mut options = self.options.clone();
        options.has_budget = self.budget != SearchBudget::default();
        let mut selector = build_selector(&self.method, &space, &options)?;
        let cells =
            ClosureCells { space: Arc::clone(&space), evaluate, failures: Mutex::default() };
        let mut on_progress = self.on_progress;
        let mut on_round = |progress: SearchProgress<'_>| {
            if let Some(callback) = &mut on_progress {
                callback(&SelectionProgress::new(&space, progress));
            }
        };
        let halt = || self.cancel.is_cancelled();
        let options = SearchOptions {
            max_concurrent: self.max_concurrent,
            budget: self.budget,
            objective: self.options.objective,
            on_round: Some(&mut on_round),
            halt: Some(&halt),
            ..SearchOptions::default()
        };
        let outcome = select_best(&space, selector.as_mut(), &cells, options).await;
        let failures = cells.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(outcome) => Ok(SelectionResult::of_search(space, outcome, failures)),
            Err(source) => Err(Error::Search { source, failures }),
        }
    }
}

/// Evaluator that calls the closure and measures its latency.
struct ClosureCells<F> {
    space: Arc<Space>,
    evaluate: F,
    failures: Mutex<Vec<CellFailure>>,
}

#[async_trait::async_trait]
impl<F, Fut> Evaluate for ClosureCells<F>
where
    F: Fn(Combination, usize) -> Fut + Send + Sync,
    Fut: Future<Output = Result<CellScore, CellError>> + Send,
{
    async fn evaluate(&self, cell: Cell) -> Result<Observation, SearchLimit> {
        let combination = Combination::new(Arc::clone(&self.space), cell.combo);
        let start = Instant::now();
        let result = (self.evaluate)(combination.clone(), cell.datapoint).await;
        let latency = start.elapsed();
        let error = match result {
            Ok(score) => return Ok(score.observation(latency)),
            Err(error) => error,
        };
        let observation = match error.is_fatal() {
            true => Err(SearchLimit::Halted),
            false => Ok(error.observation(latency)),
        };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < MAX_FAILURES {
            failures.push(CellFailure::new(combination, cell.datapoint, error));
        }
        observation
    }
}
