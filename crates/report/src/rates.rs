//! Pass rates and scores by check and by tag.

use crate::table::percent;
use bakeoff_core::{CaseIds, CheckResult, Status, Summary, TargetName, TrialResult};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Collects the results of checks and tags over the judged trials of a run.
#[derive(Debug)]
pub struct Rates {
    /// Ids of the cases of the run; other cases are ignored.
    cases: Arc<CaseIds>,
    checks: BTreeMap<(TargetName, String), Tally>,
    /// Ids of checks in the order of their first results, which is that of the suite.
    order: Vec<String>,
    tags: BTreeMap<(TargetName, String), Tally>,
}

/// Sums over results.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    passed: u64,
    counted: u64,
    score: f64,
    is_graded: bool,
}

/// Rate of a check or tag under a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Name of the target.
    pub target: TargetName,
    /// Id of the check, or the tag.
    pub name: String,
    /// Results that passed.
    pub passed: u64,
    /// Results that passed or failed; trials without a result do not count.
    pub counted: u64,
    /// `passed / counted`.
    pub pass_rate: f64,
    /// Mean score.
    pub score: f64,
    /// Whether a result was graded, so that the score says more than the pass rate.
    pub graded: bool,
}

impl Rates {
    /// Creates a collector for the cases of a run.
    pub fn new(cases: Arc<CaseIds>) -> Rates {
        Rates { cases, checks: BTreeMap::new(), order: Vec::new(), tags: BTreeMap::new() }
    }

    /// Adds the result of a trial.
    pub fn add(&mut self, result: &TrialResult) {
        let is_judged = matches!(result.status, Status::Passed | Status::Failed);
        if !is_judged || self.cases.position(result.key.case.as_str()).is_none() {
            return;
        }
        let target = &result.key.target;
        for check in &result.checks {
            if !self.order.contains(&check.check) {
                self.order.push(check.check.clone());
            }
            let tally = self.checks.entry((target.clone(), check.check.clone())).or_default();
            tally.add(check.passed, check.score, check.graded);
        }
        for tag in &result.tags {
            let tally = self.tags.entry((target.clone(), tag.clone())).or_default();
            let is_graded = result.checks.iter().any(|check: &CheckResult| check.graded);
            let passed = result.status == Status::Passed;
            tally.add(passed, result.score.unwrap_or(f64::from(u8::from(passed))), is_graded);
        }
    }

    /// Returns the rates of checks: by target and check, both in the suite's order.
    pub fn checks(&self, summary: &Summary) -> Vec<Rate> {
        let by_target = summary.targets.iter().flat_map(|target| {
            self.order.iter().map(|check| (target.target.clone(), check.clone()))
        });
        by_target.filter_map(|key| Some(self.checks.get(&key)?.rate(key))).collect()
    }

    /// Returns the rates of tags: by target in the suite's order, then by name.
    pub fn tags(&self, summary: &Summary) -> Vec<Rate> {
        let of_target = |target: &TargetName| {
            let tags = self.tags.iter().filter(|((name, _), _)| name == target);
            tags.map(|(key, tally)| tally.rate(key.clone())).collect::<Vec<_>>()
        };
        summary.targets.iter().flat_map(|target| of_target(&target.target)).collect()
    }
}

impl Tally {
    fn add(&mut self, passed: bool, score: f64, is_graded: bool) {
        self.passed += u64::from(passed);
        self.counted += 1;
        self.score += score;
        self.is_graded |= is_graded;
    }

    fn rate(&self, (target, name): (TargetName, String)) -> Rate {
        let Tally { passed, counted, score, is_graded: graded } = *self;
        let base = counted.max(1) as f64;
        let (pass_rate, score) = (passed as f64 / base, score / base);
        Rate { target, name, passed, counted, pass_rate, score, graded }
    }
}

/// Returns a table of rates with one line per target and check or tag; `label` names the column.
pub fn rates_table(label: &str, rates: &[Rate]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let has_scores = rates.iter().any(|rate| rate.graded);
    let mut header = vec!["target", label, "passed", "pass rate"];
    if has_scores {
        header.push("score");
    }
    table.set_header(header);
    for rate in rates {
        let mut row = vec![
            rate.target.to_string(),
            rate.name.clone(),
            format!("{}/{}", rate.passed, rate.counted),
            percent(rate.pass_rate, 0),
        ];
        if has_scores {
            row.push(format!("{:.3}", rate.score));
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index >= 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{summary, target};
    use bakeoff_core::{Attempt, TrialKey, Verdict};

    fn result(case: &str, tags: &[&str], status: Status, scores: &[(&str, f64)]) -> TrialResult {
        let check = |(id, score): &(&str, f64)| CheckResult {
            check: (*id).to_owned(),
            passed: *score >= 0.5,
            score: *score,
            graded: id.starts_with("graded"),
            required: true,
            weight: 1.0,
            message: String::new(),
        };
        TrialResult {
            key: TrialKey { target: "small".into(), case: case.into(), trial: 1 },
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            status,
            score: Some(scores.iter().map(|(_, score)| score).sum::<f64>() / scores.len() as f64),
            checks: scores.iter().map(check).collect(),
            attempt: Attempt::default(),
        }
    }

    #[test]
    fn rates_are_over_judged_trials_in_the_order_of_the_suite() {
        let mut rates = Rates::new(Arc::new(["a", "b", "c"].into_iter().collect()));
        let (passed, failed) = (Status::Passed, Status::Failed);
        rates.add(&result("a", &["x", "y"], passed, &[("z", 1.0), ("graded", 0.75)]));
        rates.add(&result("b", &["x"], failed, &[("z", 1.0), ("graded", 0.25), ("own", 0.0)]));
        rates.add(&result("c", &["x"], Status::Error, &[("z", 0.0)]));
        rates.add(&result("not-planned", &["x"], failed, &[("z", 0.0)]));
        let summary = summary(vec![target("small", Verdict::Failed)]);
        insta::assert_snapshot!(rates_table("check", &rates.checks(&summary)), @r#"
        target  check   passed  pass rate  score
        small   z          2/2      100 %  1.000
        small   graded     1/2       50 %  0.500
        small   own        0/1        0 %  0.000
        "#);
        insta::assert_snapshot!(rates_table("tag", &rates.tags(&summary)), @r#"
        target  tag  passed  pass rate  score
        small   x       1/2       50 %  0.646
        small   y       1/1      100 %  0.875
        "#);
    }
}
