//! Differences between the plan of an earlier run and that of the current suite.

use bakeoff_eval::{RunFile, SuiteRecord};
use bakeoff_suite::Suite;

/// What the number of trials in the suite file is called.
const TRIALS: &str = "`trials` of the suite";

/// What makes two plans differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// What `--extend` allows.
    pub(crate) more: Vec<String>,
    /// What makes results incomparable.
    pub(crate) other: Vec<String>,
}

/// How a suite of today differs from that of an earlier run.
pub(crate) fn differences(then: &RunFile, now: &RunFile, suite: &Suite) -> Differences {
    let mut found = Differences::default();
    let (old, new) = (&then.suite, &now.suite);
    let other = |found: &mut Differences, what: &str, old: String, new: String| {
        if old != new {
            found.other.push(format!("{what} was {old} and is {new}"));
        }
    };
    if new.trials > old.trials {
        found.more.push(format!("{} trials instead of {}", new.trials, old.trials));
    } else {
        other(&mut found, "the number of trials", old.trials.to_string(), new.trials.to_string());
    }
    let share = |share: Option<f64>| share.map_or("absent".to_owned(), |share| share.to_string());
    other(&mut found, "the threshold", old.threshold.to_string(), new.threshold.to_string());
    other(
        &mut found,
        "the suite threshold",
        share(old.suite_threshold),
        share(new.suite_threshold),
    );
    let stop = |suite: &SuiteRecord| format!("{:?} at {}", suite.early_stop, suite.alpha);
    other(&mut found, "early stopping", stop(old).to_lowercase(), stop(new).to_lowercase());
    other(&mut found, "the seed", then.seed.to_string(), now.seed.to_string());
    if (&old.chosen.cases, &old.chosen.tags) != (&new.chosen.cases, &new.chosen.tags) {
        found.other.push("other cases are chosen by --case and --tag".to_owned());
    }
    if old.cases.digest != new.cases.digest {
        let is_longer = new.cases.total > old.cases.total
            && suite.cases.digest_of(old.cases.total).as_ref() == Some(&old.cases.digest);
        if is_longer {
            found.more.push(format!("{} more cases", new.cases.total - old.cases.total));
        } else {
            found.other.push("cases have changed, or new ones do not stand at the end".to_owned());
        }
    }
    for (name, digest) in &old.parts {
        match new.parts.get(name) {
            None => found.other.push(format!("{name} is gone")),
            Some(today) if today != digest => {
                let is_larger = |then: u32, today: u32| today > then;
                let numbers = digest.parse().ok().zip(today.parse().ok());
                let is_more = name == TRIALS && numbers.is_some_and(|(a, b)| is_larger(a, b));
                let list = if is_more { &mut found.more } else { &mut found.other };
                list.push(format!("{name} has changed"));
            }
            Some(_) => {}
        }
    }
    for name in new.parts.keys().filter(|name| !old.parts.contains_key(*name)) {
        // What new trials bring changes no result that is there.
        let is_more = name == TRIALS || name.starts_with("target") || name.starts_with("model");
        let is_more = is_more || name.starts_with("simulated model") || name.starts_with("role");
        let list = if is_more { &mut found.more } else { &mut found.other };
        list.push(format!("{name} is new"));
    }
    found
}
