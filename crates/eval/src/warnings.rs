//! Checks before a run starts, and warnings before and after it.

use crate::Error;
use crate::dispatch::Dispatcher;
use crate::estimate::estimate;
use crate::lane::LaneEnd;
use crate::limit_overrides::conflicting_limits;
use crate::run::Run;
use bakeoff_core::{Event, NanoDollars};
use bakeoff_suite::{Suite, Target};

fn warning(code: &str, message: String) -> Event {
    Event::Warning { code: code.to_owned(), message }
}

/// Returns the warnings of the suite.
pub(crate) fn suite_warnings(suite: &Suite) -> Vec<Event> {
    let warnings = suite.warnings.iter();
    warnings.map(|(code, message)| warning(code, message.clone())).collect()
}

/// Returns the warnings before the first call of a run of which `done` trials are finished.
pub(crate) fn start_warnings(run: &Run, done: u64) -> Vec<Event> {
    let suite = &run.suite;
    let mut warnings = suite_warnings(suite);
    let conflicts = conflicting_limits(&suite.targets).into_iter();
    warnings.extend(conflicts.map(|conflict| warning("PACE_LIMITS_DIFFER", conflict)));
    let remaining = run.plan().total.saturating_sub(done);
    if remaining >= suite.settings.cost_warning {
        let cost = describe_cost(suite, remaining);
        warnings.push(warning("EVAL_COST_WARNING", format!("{remaining} trials: {cost}")));
    }
    warnings
}

/// Returns a warning if cases have their own numbers of trials, which searches do not use.
pub(crate) fn own_trials_warning(suite: &Suite) -> Option<Event> {
    let own = suite.survey.own_rules.iter().filter(|(_, own)| own.trials.is_some()).count();
    let message = format!(
        "a search runs `trials` of [suite] for all cases; {own} with their own number do not differ"
    );
    (own > 0).then(|| warning("EVAL_SETTING_IGNORED", message))
}

/// Describes the estimated cost of a number of trials.
fn describe_cost(suite: &Suite, trials: u64) -> String {
    let whole = estimate(suite);
    // The estimate is for the whole suite, of which the run may be a part.
    let share = trials as f64 / whole.total_trials().max(1) as f64;
    let cost = NanoDollars((whole.total_cost().0 as f64 * share).round() as i64);
    let unpriced = whole.targets.iter().filter(|target| target.cost.is_none()).count();
    let is_lower_bound = whole.targets.iter().any(|target| target.is_lower_bound);
    match unpriced {
        0 if is_lower_bound => format!("at least {cost}"),
        0 => format!("about {cost}"),
        all if all == whole.targets.len() => "cost unknown".to_owned(),
        _ if is_lower_bound => format!("at least {cost}, plus targets without a known price"),
        _ => format!("about {cost}, plus targets without a known price"),
    }
}

/// Fails when a role has no model. Commands that only read a suite use the first candidate, but a run
/// must not.
pub(crate) fn check_roles(suite: &Suite) -> Result<(), Error> {
    let unassigned = |target: &Target| {
        let mut roles = target.roles.iter().map(|(role, _)| role);
        roles.find(|role| suite.unassigned_roles.contains(role)).cloned()
    };
    match suite.targets.iter().find_map(|target| Some((target, unassigned(target)?))) {
        None => Ok(()),
        Some((target, role)) => Err(Error::usage(
            format!("no model assigned to role `{role}` of the target `{}`", target.name),
            Some(format!(
                "write `{role} = \"provider/model\"` under [roles], or let `bakeoff select` find the best"
            )),
        )),
    }
}

/// Returns a warning for each target that was stopped because of errors.
pub(crate) fn stopped_target_warnings(dispatcher: &Dispatcher) -> Vec<Event> {
    let stopped = dispatcher.ended_lanes().filter(|(_, end)| *end == LaneEnd::TooManyErrors);
    stopped
        .map(|(target, _)| {
            let message = format!(
                "stopped `{target}`: too many of its trials ended in errors (`max_error_rate`)"
            );
            warning("EVAL_TOO_MANY_ERRORS", message)
        })
        .collect()
}
