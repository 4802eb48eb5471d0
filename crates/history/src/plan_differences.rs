//! Differences between the plan of an earlier run and the current one.

use bakeoff_eval::{RunFile, SuiteRecord, TrialRule};
use bakeoff_suite::Suite;

/// Display name of the number of trials in the suite file.
const TRIALS: &str = "`trials` of the suite";

/// Differences between two plans.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanDifferences {
    /// Additions, which `--extend` allows.
    pub(crate) additions: Vec<String>,
    /// Changes that make results incomparable.
    pub(crate) changes: Vec<String>,
}

/// Compares the plan of an earlier run with the current one.
pub(crate) fn plan_differences(
    earlier: &RunFile,
    current: &RunFile,
    suite: &Suite,
) -> PlanDifferences {
    let mut found = PlanDifferences::default();
    let (old, new) = (&earlier.suite, &current.suite);
    let change = |found: &mut PlanDifferences, what: &str, old: String, new: String| {
        if old != new {
            found.changes.push(format!("{what} was {old} and is {new}"));
        }
    };
    if new.trials > old.trials {
        found.additions.push(format!("{} trials instead of {}", new.trials, old.trials));
    } else {
        change(&mut found, "the number of trials", old.trials.to_string(), new.trials.to_string());
    }
    own_rule_differences(&mut found, earlier, current);
    let share = |share: Option<f64>| share.map_or("absent".to_owned(), |share| share.to_string());
    change(&mut found, "the threshold", old.threshold.to_string(), new.threshold.to_string());
    change(
        &mut found,
        "the suite threshold",
        share(old.suite_threshold),
        share(new.suite_threshold),
    );
    let stop = |suite: &SuiteRecord| format!("{:?} at {}", suite.early_stop, suite.alpha);
    change(&mut found, "early stopping", stop(old).to_lowercase(), stop(new).to_lowercase());
    change(&mut found, "the seed", earlier.seed.to_string(), current.seed.to_string());
    if (&old.chosen.cases, &old.chosen.tags) != (&new.chosen.cases, &new.chosen.tags) {
        found.changes.push("--case or --tag select other cases".to_owned());
    }
    for (name, old, new) in [
        ("--limit", old.chosen.limit, new.chosen.limit),
        ("--sample", old.chosen.sample, new.chosen.sample),
    ] {
        match (old, new) {
            (Some(old), Some(new)) if new > old => {
                found.additions.push(format!("{name} {new} instead of {old}"));
            }
            _ if old == new => {}
            _ => found.changes.push(format!("{name} selects other cases")),
        }
    }
    // New cases of the suite may displace others from a sample.
    if old.chosen.sample.is_some()
        && old.chosen.sample <= new.chosen.sample
        && old.cases.chosen.iter().any(|id| new.cases.chosen.position(id).is_none())
    {
        found.changes.push("--sample selects other cases".to_owned());
    }
    if old.cases.digest != new.cases.digest {
        let is_longer = new.cases.total > old.cases.total
            && suite.cases.digest_of(old.cases.total).as_ref() == Some(&old.cases.digest);
        if is_longer {
            found.additions.push(format!("{} more cases", new.cases.total - old.cases.total));
        } else {
            found.changes.push("cases have changed, or new cases are not at the end".to_owned());
        }
    }
    for (name, digest) in &old.parts {
        match new.parts.get(name) {
            None => found.changes.push(format!("{name} is gone")),
            Some(current) if current != digest => {
                let numbers: Option<(u32, u32)> = digest.parse().ok().zip(current.parse().ok());
                let is_addition =
                    name == TRIALS && numbers.is_some_and(|(earlier, current)| current > earlier);
                let list = if is_addition { &mut found.additions } else { &mut found.changes };
                list.push(format!("{name} has changed"));
            }
            Some(_) => {}
        }
    }
    for name in new.parts.keys().filter(|name| !old.parts.contains_key(*name)) {
        // Parts that only new trials use do not change existing results.
        let prefixes = ["target", "model", "simulated model", "role"];
        let is_addition = name == TRIALS || prefixes.iter().any(|prefix| name.starts_with(prefix));
        let list = if is_addition { &mut found.additions } else { &mut found.changes };
        list.push(format!("{name} is new"));
    }
    found
}

/// Compares the rules of cases where one of the plans has a rule of their own.
fn own_rule_differences(found: &mut PlanDifferences, earlier: &RunFile, current: &RunFile) {
    if earlier.suite.own_rules.is_empty() && current.suite.own_rules.is_empty() {
        return;
    }
    let (old, new) = (earlier.criteria(), current.criteria());
    let difference = |differs: fn(TrialRule, TrialRule) -> bool| {
        old.plan.first_difference(&old.cases, &new.plan, &new.cases, differs)
    };
    if let Some((id, old, new)) = difference(|old, new| new.trials < old.trials) {
        let text = format!("the trials of case `{id}` were {} and are {}", old.trials, new.trials);
        found.changes.push(text);
    } else if let Some((id, old, new)) = difference(|old, new| new.trials > old.trials) {
        let text = format!("{} trials of case `{id}` instead of {}", new.trials, old.trials);
        found.additions.push(text);
    }
    if let Some((id, old, new)) = difference(|old, new| new.threshold != old.threshold) {
        let (old, new) = (old.threshold.as_f64(), new.threshold.as_f64());
        found.changes.push(format!("the threshold of case `{id}` was {old} and is {new}"));
    }
}
