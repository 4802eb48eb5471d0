//! Budget of a run: its limits, the prices that it needs, and the reservations of programs and services, which make
//! their calls themselves.

use crate::Error;
use crate::context::TrialContext;
use crate::limit_overrides::called_models;
use bakeoff_core::{Attempt, ErrorKind, Event, NanoDollars, TrialError, Usage};
use bakeoff_pace::{Expense, ExpenseLimit, Reservation, SharedBudget};
use bakeoff_suite::{Budget, PRICES_HINT, Protocol, Suite, Target, TargetKind};
use std::time::Duration;

/// Estimate for trials of unknown expense: the ledger scales it with the largest expense so far.
const UNIT: Expense = Expense { cost: NanoDollars(1), tokens: 1 };

/// Returns the budget of all calls, of which `spent` was spent before; `None` without a limit.
pub(crate) fn shared_budget(budget: &Budget, spent: Expense) -> Option<SharedBudget> {
    let limit = ExpenseLimit { cost: budget.cost, tokens: budget.tokens };
    (limit != ExpenseLimit::default()).then(|| SharedBudget::new(limit, spent))
}

/// Returns a warning when a part of the budget is exhausted.
pub(crate) fn budget_warning(
    shared: Option<&SharedBudget>,
    budget: &Budget,
    elapsed: Duration,
) -> Option<Event> {
    let exhausted = shared.and_then(SharedBudget::exhausted);
    let reason = match (exhausted, budget.time.filter(|max| elapsed >= *max)) {
        (Some(exhausted), _) => exhausted.reason.clone(),
        (None, Some(max)) => format!("deadline of {} s reached", max.as_secs_f64()),
        (None, None) => return None,
    };
    let message = format!("no further trials started: {reason}");
    Some(Event::Warning { code: "EVAL_BUDGET_USED_UP".to_owned(), message })
}

/// Fails when an expense could not be known: a budget could not be enforced.
pub(crate) fn check_prices(suite: &Suite, budget: &Budget) -> Result<(), Error> {
    if budget.cost.is_some() {
        let call = Usage { input: 1, output: 1, ..Usage::default() };
        let unpriced = called_models(&suite.targets)
            .into_iter()
            .find(|(_, model)| model.model.cost(&call).is_none())
            .map(|(_, model)| model.label.clone());
        let judge = suite.judges.iter().find(|(_, judge)| judge.cost(&call).is_none());
        if let Some(model) = unpriced.or(judge.map(|(name, _)| name.clone())) {
            return Err(Error::usage(
                format!("no price known for `{model}`; a cost budget needs one"),
                Some(format!(
                    "{PRICES_HINT}, or limit the tokens instead: `max_tokens` under [suite]"
                )),
            ));
        }
    }
    let has_limit = budget.cost.is_some() || budget.tokens.is_some();
    match suite.targets.iter().find(|target| has_limit && !can_report_expense(target, budget)) {
        None => Ok(()),
        Some(target) if budget.cost.is_some() => Err(Error::usage(
            format!("the cost of `{}` is unknown; a cost budget needs it", target.base()),
            Some(cost_hint(target)),
        )),
        Some(target) => Err(Error::usage(
            format!("`{}` does not report its tokens; a token budget needs them", target.base()),
            Some(tokens_hint(target)),
        )),
    }
}

/// Whether the trials of a target can have a known expense. Workers and some agents report it only with the first
/// trial.
fn can_report_expense(target: &Target, budget: &Budget) -> bool {
    let pricing = &target.pricing;
    let reports_tokens = match &target.kind {
        TargetKind::Model(_) | TargetKind::Chain(_) => return true,
        TargetKind::Program(program) => {
            program.agent.is_some() || program.protocol == Protocol::JsonLines
        }
        TargetKind::Service(service) => {
            service.usage.input.is_some() || service.usage.output.is_some()
        }
    };
    let reports_cost = match &target.kind {
        TargetKind::Program(program) => match &program.agent {
            Some((agent, _)) => agent.reports_cost(),
            None => reports_tokens,
        },
        TargetKind::Service(service) => service.usage.cost.is_some(),
        TargetKind::Model(_) | TargetKind::Chain(_) => true,
    };
    let has_cost =
        pricing.is_fixed() || reports_cost || (reports_tokens && pricing.has_token_prices());
    (budget.cost.is_none() || has_cost) && (budget.tokens.is_none() || reports_tokens)
}

fn cost_hint(target: &Target) -> String {
    let report = match &target.kind {
        TargetKind::Service(_) => "name the reported cost: `usage = { cost_usd = \"$.…\" }`",
        TargetKind::Program(program) if program.agent.is_some() => {
            "set the prices of its tokens: `priced_as = \"provider/model\"`"
        }
        _ => "report it with `protocol = \"jsonl\"`",
    };
    format!("{report}, or set `trial_cost_usd` (0 if a trial costs nothing)")
}

fn tokens_hint(target: &Target) -> String {
    match &target.kind {
        TargetKind::Service(_) => "name them: `usage = { input_tokens = \"$.…\" }`".to_owned(),
        _ => "report them with `protocol = \"jsonl\"`, or remove `max_tokens`".to_owned(),
    }
}

/// The reserved expense of a trial whose target makes its calls itself; empty without a budget.
pub(crate) struct TrialReservation<'a> {
    target: &'a Target,
    reserved: Option<(&'a SharedBudget, Reservation)>,
}

impl<'a> TrialReservation<'a> {
    /// Waits until the likely expense of a trial fits.
    pub(crate) async fn new(
        context: &'a TrialContext,
        target: &'a Target,
    ) -> Result<TrialReservation<'a>, TrialError> {
        let Some(budget) = context.client.budget() else {
            return Ok(TrialReservation { target, reserved: None });
        };
        let kind = format!("target {}", target.name);
        let reservation = tokio::select! {
            biased;
            () = context.stop.cancelled() => {
                let message = "cancelled".to_owned();
                return Err(TrialError { kind: ErrorKind::Cancelled, message });
            }
            reserved = budget.reserve(&kind, UNIT) => reserved,
        };
        match reservation {
            Ok(reservation) => {
                Ok(TrialReservation { target, reserved: Some((budget, reservation)) })
            }
            Err(exhausted) => {
                Err(TrialError { kind: ErrorKind::Budget, message: exhausted.to_string() })
            }
        }
    }

    /// Records the expense of the trial. An unknown one closes the budget.
    pub(crate) fn finish(self, attempt: &mut Attempt) {
        let TrialReservation { target, reserved } = self;
        let Some((budget, reservation)) = reserved else { return };
        let limit = budget.limit();
        let tokens = attempt.usage.map(|usage| usage.total());
        let unknown = if limit.cost.is_some() && attempt.cost.is_none() {
            Some(("cost", cost_hint(target)))
        } else if limit.tokens.is_some() && tokens.is_none() {
            Some(("number of tokens", tokens_hint(target)))
        } else {
            None
        };
        match unknown {
            None => {
                let (cost, tokens) = (attempt.cost.unwrap_or_default(), tokens.unwrap_or_default());
                reservation.finish(Expense { cost, tokens });
            }
            // A failed trial probably had the same expense as others.
            Some(_) if attempt.error.is_some() => {
                attempt.lost_cost += reservation.forfeit().cost;
            }
            Some((what, hint)) => {
                attempt.lost_cost += reservation.forfeit().cost;
                let name = target.base();
                budget
                    .close(format!("`{name}` reported no {what}, which the budget needs; {hint}"));
            }
        }
    }
}
