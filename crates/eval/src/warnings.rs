//! What people should know that does not stop a run: before it, and when it stops before its end.

use crate::Error;
use crate::dispatch::Dispatcher;
use crate::estimate::estimate;
use crate::lane::Ended;
use crate::limited::{asked_models, different_limits};
use crate::run::Run;
use bakeoff_core::{Event, NanoDollars, Usage};
use bakeoff_suite::{Budget, Suite, Target};
use std::time::Duration;

impl Run {
    /// What people should know before the first call.
    pub(crate) fn warnings(&self, done: u64) -> Vec<Event> {
        let warning =
            |code: &str, message: String| Event::Warning { code: code.to_owned(), message };
        let known = self.suite.warnings.iter();
        let mut warnings: Vec<Event> =
            known.map(|(code, message)| warning(code, message.clone())).collect();
        let differ = different_limits(&self.suite.targets);
        warnings.extend(differ.into_iter().map(|what| warning("PACE_LIMITS_DIFFER", what)));
        let total = self.plan().total.saturating_sub(done);
        if total >= self.suite.settings.cost_warning {
            let whole = estimate(&self.suite);
            // The estimate is for the whole suite, and some of it may not be wanted.
            let share = total as f64 / whole.total_trials().max(1) as f64;
            let cost = NanoDollars((whole.total_cost().0 as f64 * share).round() as i64);
            let unpriced = whole.targets.iter().filter(|target| target.cost.is_none()).count();
            let is_least = whole.targets.iter().any(|target| target.is_least);
            let money = match unpriced {
                0 if is_least => format!("at least {cost}"),
                0 => format!("about {cost}"),
                all if all == whole.targets.len() => "what they cost is not known".to_owned(),
                _ if is_least => format!("at least {cost}, and more for targets without a price"),
                _ => format!("about {cost}, and more for targets without a price"),
            };
            warnings.push(warning("EVAL_COST_WARNING", format!("{total} trials: {money}")));
        }
        warnings
    }

    /// Says which budget is used up.
    pub(crate) fn used_up(
        &self,
        (cost, tokens): (NanoDollars, u64),
        time: Duration,
    ) -> Option<Event> {
        let Budget { cost: most_cost, tokens: most_tokens, time: most_time } =
            self.suite.settings.budget;
        let what = if most_cost.is_some_and(|most| cost >= most) {
            format!("{cost} of {} are spent", most_cost.unwrap_or_default())
        } else if most_tokens.is_some_and(|most| tokens >= most) {
            format!("{tokens} of {} tokens are used", most_tokens.unwrap_or_default())
        } else if most_time.is_some_and(|most| time >= most) {
            format!("{} s have passed", most_time.unwrap_or_default().as_secs_f64())
        } else {
            return None;
        };
        let message = format!("no new trial was started: {what}");
        Some(Event::Warning { code: "EVAL_BUDGET_USED_UP".to_owned(), message })
    }
}

/// A budget of money cannot be kept where prices are not known.
pub(crate) fn needs_prices(suite: &Suite) -> Result<(), Error> {
    let call = Usage { input: 1, output: 1, ..Usage::default() };
    let unpriced = asked_models(&suite.targets)
        .into_iter()
        .find(|(_, model)| model.model.cost(&call).is_none())
        .map(|(_, model)| model.label.clone());
    let judge = suite.judges.iter().find(|(_, judge)| judge.cost(&call).is_none());
    match unpriced.or(judge.map(|(name, _)| name.clone())) {
        None => Ok(()),
        Some(model) => Err(Error::Usage {
            code: None,
            message: format!("the price of `{model}` is not known, so no budget of money can be kept"),
            hint: Some(
                "give its table under [models] `prices = { input = …, output = … }` in dollars per million tokens"
                    .to_owned(),
            ),
        }),
    }
}

/// A first candidate may stand in for a role where nothing is asked, but not in a run.
pub(crate) fn roles_filled(suite: &Suite) -> Result<(), Error> {
    let role = |target: &Target| {
        let mut roles = target.roles.iter().map(|(role, _)| role);
        roles.find(|role| suite.unassigned_roles.contains(role)).cloned()
    };
    match suite.targets.iter().find_map(|target| Some((target, role(target)?))) {
        None => Ok(()),
        Some((target, role)) => Err(Error::Usage {
            code: None,
            message: format!("nobody fills the role `{role}` of the target `{}`", target.name),
            hint: Some(format!(
                "write `{role} = \"provider/model\"` under [roles], or let `bakeoff select` find who is best"
            )),
        }),
    }
}

/// Says which targets were given up.
pub(crate) fn given_up(dispatcher: &Dispatcher) -> Vec<Event> {
    dispatcher
        .ended_early()
        .filter(|(_, why)| *why == Ended::GivenUp)
        .map(|(target, _)| Event::Warning {
            code: "EVAL_TOO_MANY_ERRORS".to_owned(),
            message: format!(
                "`{target}` was given up: too many of its trials errored (`max_error_rate`)"
            ),
        })
        .collect()
}
