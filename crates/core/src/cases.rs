//! Cases of a target in a summary.
//!
//! A suite may have a very large number of cases. [`CaseList`] therefore stores compact counts and
//! creates [`CaseSummary`], the form used in files and reports, on demand.

use crate::{CaseId, CaseIds, Interval, NanoDollars, Status};
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Results of one case under one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    /// Id of the case.
    pub id: CaseId,
    /// Verdict as a status; `error` when it depends on missing trials.
    pub status: Status,
    /// Trials that passed.
    pub pass_count: u32,
    /// Planned trials.
    pub total_trials: u32,
    /// Share of the judged trials that passed; absent without judged trials. For FastSkill projects, share of
    /// the planned trials.
    pub pass_rate: Option<f64>,
    /// Trials that were judged.
    pub counted: u32,
    /// Trials that errored.
    pub errors: u32,
    /// Mean score of the judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Prompt tokens of all trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Answer tokens of all trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Commands that agents ran in all trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_count: Option<u64>,
    /// Cost of all trials, as far as known; absent if nothing is known.
    #[serde(default)]
    pub cost_nanodollars: Option<NanoDollars>,
    /// 95 % interval of the pass rate; absent without judged trials. A Wilson interval, or a
    /// confidence sequence for a case that was stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Probability that two trials disagree; absent with fewer than two trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flake_rate: Option<f64>,
    /// Share of the trials that must pass, if the case has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_threshold: Option<f64>,
    /// Whether the verdict was reached before all trials were run; the pass rate is then biased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_early: bool,
    /// Position of the true pass rate relative to the threshold, given enough evidence.
    #[serde(default, skip_serializing_if = "TrueRate::is_unresolved")]
    pub true_rate: TrueRate,
    /// Status of each planned trial; unneeded trials are skipped.
    #[serde(default)]
    pub trials: Vec<TrialStatus>,
}

/// Status of one trial in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialStatus {
    /// Trial number, from 1.
    pub trial_id: u32,
    /// Status of the trial.
    pub status: Status,
}

/// Position of a true pass rate relative to a threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrueRate {
    /// Above the threshold, at 95 % confidence.
    Above,
    /// Below the threshold, at 95 % confidence.
    Below,
    /// Undetermined by these trials.
    #[default]
    Unresolved,
}

impl TrueRate {
    fn is_unresolved(&self) -> bool {
        *self == TrueRate::Unresolved
    }
}

/// Counts of one case. Sums are integers, so they do not depend on the order of trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CaseCounts {
    /// Planned trials.
    pub planned: u32,
    /// Share of the trials that must pass, if the case has its own.
    pub own_threshold: Option<f64>,
    /// Trials that passed.
    pub passed: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Trials that errored.
    pub errors: u32,
    /// Verdict as a status; absent while it depends on missing trials.
    pub status: Option<Status>,
    /// Whether any trial reported its tokens.
    pub has_usage: bool,
    /// Sum of the scores of judged trials, in millionths.
    pub score_millionths: u64,
    /// Prompt tokens of all trials.
    pub input_tokens: u64,
    /// Answer tokens of all trials.
    pub output_tokens: u64,
    /// Commands of all trials, where known.
    pub commands: Option<u64>,
    /// Cost of all trials, as far as known.
    pub cost: Option<NanoDollars>,
    /// 95 % interval of the pass rate.
    pub interval: Option<Interval>,
    /// Probability that two trials disagree.
    pub flake_rate: Option<f64>,
    /// Whether the verdict was reached before all trials were run.
    pub stopped_early: bool,
    /// Position of the true pass rate relative to the threshold.
    pub true_rate: TrueRate,
}

impl CaseCounts {
    /// Returns the number of judged trials.
    pub fn counted(&self) -> u32 {
        self.passed + self.failed
    }

    /// Returns the verdict as a status. An undecided case is an error if any trial is one.
    fn shown_status(&self) -> Status {
        let undecided = if self.errors > 0 { Status::Error } else { Status::Skipped };
        self.status.unwrap_or(undecided)
    }
}

/// Cases of a target, in the suite's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseList {
    ids: Arc<CaseIds>,
    counts: Vec<CaseCounts>,
    /// Status of each planned trial, case by case.
    statuses: Vec<Status>,
    /// Whether pass rates are shares of the planned trials.
    has_planned_rates: bool,
}

impl CaseList {
    /// Creates a list with one entry per id. `statuses` has the statuses of all planned trials, case by case.
    pub fn new(ids: Arc<CaseIds>, counts: Vec<CaseCounts>, statuses: Vec<Status>) -> CaseList {
        CaseList { ids, counts, statuses, has_planned_rates: false }
    }

    /// Makes pass rates shares of the planned trials instead of the judged ones, as in FastSkill.
    #[must_use]
    pub fn with_planned_rates(self) -> CaseList {
        CaseList { has_planned_rates: true, ..self }
    }

    /// Returns the counts of each case with its id.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &CaseCounts)> + Clone {
        self.ids.iter().zip(&self.counts)
    }

    /// Returns the ids of the cases.
    pub fn ids(&self) -> &Arc<CaseIds> {
        &self.ids
    }

    /// Returns the number of cases.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the summary of each case.
    pub fn iter(&self) -> impl Iterator<Item = CaseSummary> {
        let mut rest = self.statuses.as_slice();
        self.counts().map(move |(id, counts)| {
            let statuses;
            (statuses, rest) = rest.split_at(rest.len().min(counts.planned as usize));
            let counted = counts.counted();
            let base = if self.has_planned_rates { counts.planned } else { counted };
            let rate = f64::from(counts.passed) / f64::from(base);
            let mean = || counts.score_millionths as f64 / 1e6 / f64::from(counted);
            CaseSummary {
                id: id.into(),
                status: counts.shown_status(),
                pass_count: counts.passed,
                total_trials: counts.planned,
                pass_rate: (base > 0).then_some(rate),
                counted,
                errors: counts.errors,
                score: (counted > 0).then(mean),
                input_tokens: counts.has_usage.then_some(counts.input_tokens),
                output_tokens: counts.has_usage.then_some(counts.output_tokens),
                command_count: counts.commands,
                cost_nanodollars: counts.cost,
                interval: counts.interval,
                flake_rate: counts.flake_rate,
                pass_threshold: counts.own_threshold,
                stopped_early: counts.stopped_early,
                true_rate: counts.true_rate,
                trials: (1..)
                    .zip(statuses)
                    .map(|(trial_id, status)| TrialStatus { trial_id, status: *status })
                    .collect(),
            }
        })
    }
}

impl Serialize for CaseList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for case in self.iter() {
            list.serialize_element(&case)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for CaseList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CaseList, D::Error> {
        struct CaseListVisitor;

        impl<'de> Visitor<'de> for CaseListVisitor {
            type Value = CaseList;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of cases")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CaseList, A::Error> {
                let (mut ids, mut counts) = (Vec::new(), Vec::new());
                let (mut statuses, mut has_planned_rates) = (Vec::new(), false);
                while let Some(case) = list.next_element::<CaseSummary>()? {
                    has_planned_rates |= is_planned_rate(&case);
                    counts.push(counts_of(&case));
                    statuses.extend(case.trials.iter().map(|trial| trial.status));
                    ids.push(case.id);
                }
                let ids = Arc::new(ids.into_iter().collect());
                Ok(CaseList { ids, counts, statuses, has_planned_rates })
            }
        }

        deserializer.deserialize_seq(CaseListVisitor)
    }
}

/// Whether the rate of a stored case can only be a share of its planned trials.
fn is_planned_rate(case: &CaseSummary) -> bool {
    let planned = f64::from(case.pass_count) / f64::from(case.total_trials.max(1));
    case.pass_count > 0 && case.counted < case.total_trials && case.pass_rate == Some(planned)
}

fn counts_of(case: &CaseSummary) -> CaseCounts {
    let score = case.score.unwrap_or_default().clamp(0.0, 1.0) * f64::from(case.counted);
    CaseCounts {
        planned: case.total_trials,
        own_threshold: case.pass_threshold,
        passed: case.pass_count,
        failed: case.counted.saturating_sub(case.pass_count),
        errors: case.errors,
        status: matches!(case.status, Status::Passed | Status::Failed).then_some(case.status),
        has_usage: case.input_tokens.is_some(),
        score_millionths: (score * 1e6).round() as u64,
        input_tokens: case.input_tokens.unwrap_or_default(),
        output_tokens: case.output_tokens.unwrap_or_default(),
        commands: case.command_count,
        // Earlier versions wrote 0 for an unknown cost.
        cost: case.cost_nanodollars.filter(|cost| !cost.is_zero() || case.input_tokens.is_some()),
        interval: case.interval,
        flake_rate: case.flake_rate,
        stopped_early: case.stopped_early,
        true_rate: case.true_rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_list_survives_a_round_trip() {
        let counts = vec![
            CaseCounts {
                planned: 4,
                own_threshold: Some(0.5),
                passed: 2,
                failed: 1,
                status: Some(Status::Passed),
                score_millionths: 2_333_333,
                has_usage: true,
                input_tokens: 7,
                cost: Some(NanoDollars(12)),
                interval: Some(Interval { low: 0.2, high: 0.9 }),
                flake_rate: Some(0.5),
                ..CaseCounts::default()
            },
            CaseCounts {
                planned: 2,
                errors: 1,
                true_rate: TrueRate::Below,
                ..CaseCounts::default()
            },
            CaseCounts { planned: 1, ..CaseCounts::default() },
        ];
        let statuses = [Status::Passed, Status::Passed, Status::Failed, Status::Skipped]
            .into_iter()
            .chain([Status::Error, Status::Skipped])
            .chain([Status::Skipped])
            .collect();
        let ids: CaseIds = ["a", "b", "c"].into_iter().collect();
        let list = CaseList::new(Arc::new(ids), counts, statuses);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<CaseList>(&json).unwrap(), list);
        let shown: Vec<Status> = list.iter().map(|case| case.status).collect();
        assert_eq!(shown, [Status::Passed, Status::Error, Status::Skipped]);
        let trials: Vec<usize> = list.iter().map(|case| case.trials.len()).collect();
        assert_eq!(trials, [4, 2, 1]);
        assert!(json.contains(r#""total_trials":4,"pass_rate":0.6666666666666666"#), "{json}");
        assert!(json.contains(r#""total_trials":2,"pass_rate":null"#), "{json}");
    }

    #[test]
    fn pass_rate_is_over_the_trials_that_ran_except_in_fastskill_projects() {
        let counts = CaseCounts { planned: 8, passed: 2, errors: 1, ..CaseCounts::default() };
        let ids = Arc::new(["a"].into_iter().collect());
        let list = CaseList::new(ids, vec![counts], vec![Status::Passed; 2]);
        let rate = |list: &CaseList| list.iter().map(|case| case.pass_rate).next().flatten();
        assert_eq!(rate(&list), Some(1.0));
        let planned = list.with_planned_rates();
        assert_eq!(rate(&planned), Some(0.25));
        let json = serde_json::to_string(&planned).unwrap();
        assert_eq!(rate(&serde_json::from_str(&json).unwrap()), Some(0.25));
    }
}
