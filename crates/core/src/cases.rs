//! The cases of a target in a summary.
//!
//! A suite may have very many of them, so what is held is small and [`CaseSummary`], the form in
//! which people and files see a case, is made when it is needed.

use crate::{CaseId, CaseIds, Interval, NanoDollars, Status};
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// One case under one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    /// The case's id.
    pub id: CaseId,
    /// Its verdict as a status; `error` when it depends on missing trials.
    pub status: Status,
    /// Trials that passed.
    pub pass_count: u32,
    /// Planned trials.
    pub total_trials: u32,
    /// `pass_count / total_trials`.
    pub pass_rate: f64,
    /// Trials that were judged.
    pub counted: u32,
    /// Trials that errored.
    pub errors: u32,
    /// Mean score of the judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Prompt tokens over its trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Answer tokens over its trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Commands that agents ran over its trials, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_count: Option<u64>,
    /// Money over its trials, as far as prices are known.
    #[serde(default)]
    pub cost_nanodollars: NanoDollars,
    /// 95 % interval of its pass rate; absent when nothing was judged. Wilson's, or a confidence
    /// sequence when it was stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// How often two of its trials disagree; absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flake_rate: Option<f64>,
    /// It has a verdict although trials were left: its pass rate is biased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_early: bool,
    /// Where the true pass rate lies beside the threshold, when there is enough evidence.
    #[serde(default, skip_serializing_if = "TrueRate::is_unresolved")]
    pub true_rate: TrueRate,
    /// How each planned trial ended; those that were not needed are skipped.
    #[serde(default)]
    pub trials: Vec<TrialStatus>,
}

/// One trial of a case in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialStatus {
    /// From 1.
    pub trial_id: u32,
    /// How it ended.
    pub status: Status,
}

/// Where a true pass rate lies beside a threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrueRate {
    /// Above it, at 95 % confidence.
    Above,
    /// Below it, at 95 % confidence.
    Below,
    /// Not to be told from these trials.
    #[default]
    Unresolved,
}

impl TrueRate {
    fn is_unresolved(&self) -> bool {
        *self == TrueRate::Unresolved
    }
}

/// What is counted of one case. Whole numbers, so that the order of its trials does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CaseCounts {
    /// Trials that passed.
    pub passed: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Trials that errored.
    pub errors: u32,
    /// Its verdict as a status; absent while trials are missing that decide it.
    pub status: Option<Status>,
    /// Some trial told its tokens.
    pub has_usage: bool,
    /// Sum of the judged trials' scores, in millionths.
    pub score_millionths: u64,
    /// Prompt tokens over its trials.
    pub input_tokens: u64,
    /// Answer tokens over its trials.
    pub output_tokens: u64,
    /// Commands over its trials, where known.
    pub commands: Option<u64>,
    /// Money over its trials.
    pub cost: NanoDollars,
    /// 95 % interval of its pass rate.
    pub interval: Option<Interval>,
    /// How often two of its trials disagree.
    pub flake_rate: Option<f64>,
    /// It has a verdict although trials were left.
    pub stopped_early: bool,
    /// Where the true pass rate lies beside the threshold.
    pub true_rate: TrueRate,
}

impl CaseCounts {
    /// Trials that were judged.
    pub fn counted(&self) -> u32 {
        self.passed + self.failed
    }

    /// The verdict as a status. What is not decided is an error if any trial was one.
    fn shown_status(&self) -> Status {
        let open = if self.errors > 0 { Status::Error } else { Status::Skipped };
        self.status.unwrap_or(open)
    }
}

/// The cases of a target, in the suite's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseList {
    ids: Arc<CaseIds>,
    counts: Vec<CaseCounts>,
    trials: u32,
    /// How each planned trial ended, case by case.
    statuses: Vec<Status>,
}

impl CaseList {
    /// One entry per id, each with so many planned trials, and the statuses of all trials case by
    /// case.
    pub fn new(
        ids: Arc<CaseIds>,
        counts: Vec<CaseCounts>,
        trials: u32,
        statuses: Vec<Status>,
    ) -> CaseList {
        CaseList { ids, counts, trials, statuses }
    }

    /// What was counted of each case, with its id.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &CaseCounts)> + Clone {
        self.ids.iter().zip(&self.counts)
    }

    /// The ids of the cases.
    pub fn ids(&self) -> &Arc<CaseIds> {
        &self.ids
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Each case as people see it.
    pub fn iter(&self) -> impl Iterator<Item = CaseSummary> {
        let statuses = self.statuses.chunks(self.trials.max(1) as usize);
        let statuses = statuses.map(Some).chain(std::iter::repeat(None));
        self.counts().zip(statuses).map(|((id, counts), statuses)| {
            let counted = counts.counted();
            let mean = || counts.score_millionths as f64 / 1e6 / f64::from(counted);
            CaseSummary {
                id: id.into(),
                status: counts.shown_status(),
                pass_count: counts.passed,
                total_trials: self.trials,
                pass_rate: f64::from(counts.passed) / f64::from(self.trials.max(1)),
                counted,
                errors: counts.errors,
                score: (counted > 0).then(mean),
                input_tokens: counts.has_usage.then_some(counts.input_tokens),
                output_tokens: counts.has_usage.then_some(counts.output_tokens),
                command_count: counts.commands,
                cost_nanodollars: counts.cost,
                interval: counts.interval,
                flake_rate: counts.flake_rate,
                stopped_early: counts.stopped_early,
                true_rate: counts.true_rate,
                trials: (1..)
                    .zip(statuses.unwrap_or_default())
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
        struct Cases;

        impl<'de> Visitor<'de> for Cases {
            type Value = CaseList;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of cases")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CaseList, A::Error> {
                let (mut ids, mut counts, mut trials) = (Vec::new(), Vec::new(), 0);
                let mut statuses = Vec::new();
                while let Some(case) = list.next_element::<CaseSummary>()? {
                    trials = case.total_trials;
                    counts.push(counts_of(&case));
                    statuses.extend(case.trials.iter().map(|trial| trial.status));
                    ids.push(case.id);
                }
                let ids = Arc::new(ids.into_iter().collect());
                Ok(CaseList::new(ids, counts, trials, statuses))
            }
        }

        deserializer.deserialize_seq(Cases)
    }
}

fn counts_of(case: &CaseSummary) -> CaseCounts {
    let score = case.score.unwrap_or_default().clamp(0.0, 1.0) * f64::from(case.counted);
    CaseCounts {
        passed: case.pass_count,
        failed: case.counted.saturating_sub(case.pass_count),
        errors: case.errors,
        status: matches!(case.status, Status::Passed | Status::Failed).then_some(case.status),
        has_usage: case.input_tokens.is_some(),
        score_millionths: (score * 1e6).round() as u64,
        input_tokens: case.input_tokens.unwrap_or_default(),
        output_tokens: case.output_tokens.unwrap_or_default(),
        commands: case.command_count,
        cost: case.cost_nanodollars,
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
    fn cases_come_back_as_they_were_written() {
        let counts = vec![
            CaseCounts {
                passed: 2,
                failed: 1,
                status: Some(Status::Passed),
                score_millionths: 2_333_333,
                has_usage: true,
                input_tokens: 7,
                cost: NanoDollars(12),
                interval: Some(Interval { low: 0.2, high: 0.9 }),
                flake_rate: Some(0.5),
                ..CaseCounts::default()
            },
            CaseCounts { errors: 1, true_rate: TrueRate::Below, ..CaseCounts::default() },
            CaseCounts::default(),
        ];
        let statuses = [Status::Passed, Status::Passed, Status::Failed]
            .into_iter()
            .chain([Status::Error, Status::Skipped, Status::Skipped])
            .chain([Status::Skipped; 3])
            .collect();
        let ids: CaseIds = ["a", "b", "c"].into_iter().collect();
        let list = CaseList::new(Arc::new(ids), counts, 3, statuses);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<CaseList>(&json).unwrap(), list);
        let shown: Vec<Status> = list.iter().map(|case| case.status).collect();
        assert_eq!(shown, [Status::Passed, Status::Error, Status::Skipped]);
        assert!(json.contains(r#""total_trials":3,"pass_rate":0.6666666666666666"#), "{json}");
    }
}
