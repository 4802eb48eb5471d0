//! `run.json`: the plan of a run, for resuming, reports and comparisons.

use crate::Error;
use crate::aggregate::RunCriteria;
use crate::config::RunConfig;
use crate::folder::RUN_FILE;
use crate::search::SearchOverrides;
use crate::target_record::describe_target;
use crate::trial_plan::{TrialPlan, TrialRule};
use bakeoff_core::{CaseIds, RunId, SCHEMA_VERSION, TargetName};
use bakeoff_stats::Threshold;
use bakeoff_suite::{EarlyStop, Suite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Contents of `run.json`. Keys and headers are left out, so that it has no secrets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFile {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: RunId,
    /// Version of Bakeoff.
    pub bakeoff_version: String,
    /// Start time, RFC 3339.
    pub started_at: String,
    /// Command line.
    pub arguments: Vec<String>,
    /// Seed.
    pub seed: u64,
    /// Layout of the folder.
    pub layout: Layout,
    /// Id of the run whose outputs were checked again, if this is a rescored run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored_from: Option<RunId>,
    /// Roles of the search, if this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<SelectRecord>,
    /// Path of the socket through which a running run can be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_socket: Option<PathBuf>,
    /// Folder in which the programs of the run work; removed at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_folder: Option<PathBuf>,
    /// The resolved suite.
    pub suite: SuiteRecord,
}

/// Roles and settings of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectRecord {
    /// Target with the roles.
    pub target: String,
    /// Roles and their candidates.
    pub roles: Vec<(String, Vec<String>)>,
    /// Settings of the command line, which a resumed search keeps.
    #[serde(default)]
    pub overrides: SearchOverrides,
}

/// Layout of a run's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Folders of cases directly in the run's folder, for a single target.
    Flat,
    /// Folders of cases in a folder for each target.
    ByTarget,
}

impl Layout {
    /// Returns the layout for a number of targets.
    pub(crate) fn of(targets: usize) -> Layout {
        if targets == 1 { Layout::Flat } else { Layout::ByTarget }
    }
}

/// The resolved suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SuiteRecord {
    /// Name of the suite.
    pub name: String,
    /// Absolute path of the suite file.
    pub path: String,
    /// Absolute path of the file whose roles replaced those of the suite, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles_file: Option<String>,
    /// Digest of the file and all cases.
    pub digest: String,
    /// Trials of each case without its own number.
    pub trials: u32,
    /// Share of a case's trials that must pass, for cases without their own threshold.
    pub threshold: f64,
    /// Cases with their own number of trials or threshold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_rules: BTreeMap<String, OwnRuleRecord>,
    /// Whether `trials` comes from the command line and replaces the numbers of the cases. Earlier versions did not read
    /// such numbers.
    #[serde(default = "yes")]
    pub has_fixed_trials: bool,
    /// Whether `threshold` comes from the command line and replaces the thresholds of the cases.
    #[serde(default = "yes")]
    pub has_fixed_threshold: bool,
    /// Share of a target's cases that must pass, if one is set.
    pub suite_threshold: Option<f64>,
    /// Whether `suite_threshold` comes from `--ci` alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ci_rule: bool,
    /// Lowest mean score with which a target passes, if one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// Whether pass rates of cases are over the planned trials, as in FastSkill.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_planned_rates: bool,
    /// Early stopping of cases.
    pub early_stop: EarlyStop,
    /// Risk of early stopping.
    pub alpha: f64,
    /// Maximum number of concurrent trials.
    pub parallel: Option<u32>,
    /// Time limit of a program or a model call.
    pub timeout_seconds: f64,
    /// The cases.
    pub cases: CasesRecord,
    /// Selection on the command line.
    pub chosen: ChosenRecord,
    /// Targets of the run.
    pub targets: Vec<serde_json::Value>,
    /// Ids of the checks.
    pub checks: Vec<String>,
    /// Digests of the parts that results depend on, by display name.
    pub parts: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

/// Number of trials and threshold of a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OwnRuleRecord {
    /// Trials of the case.
    pub trials: u32,
    /// Share of the trials that must pass.
    pub threshold: f64,
}

/// The cases of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CasesRecord {
    /// Path of the case file.
    pub path: String,
    /// Digest of all cases.
    pub digest: String,
    /// Number of cases.
    pub total: usize,
    /// Ids of the selected cases.
    pub chosen: Arc<CaseIds>,
}

/// Selection on the command line; empty lists select all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenRecord {
    /// Names of targets.
    pub targets: Vec<String>,
    /// Ids of cases.
    pub cases: Vec<String>,
    /// Tags of cases.
    pub tags: Vec<String>,
    /// Maximum number of cases, the first ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Maximum number of cases, random ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
}

impl RunFile {
    pub(crate) fn new(
        suite: &Suite,
        config: &RunConfig,
        criteria: &RunCriteria,
        run_id: RunId,
        started_at: String,
    ) -> RunFile {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        let rule = criteria.plan.default();
        RunFile {
            schema_version: SCHEMA_VERSION,
            run_id,
            bakeoff_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at,
            arguments: config.arguments.clone(),
            seed: config.seed,
            layout: Layout::of(suite.targets.len()),
            scored_from: None,
            control_socket: None,
            work_folder: None,
            select: suite.select.as_ref().map(|plan| SelectRecord {
                target: plan.target.clone(),
                roles: plan.roles.clone(),
                overrides: config.search.clone(),
            }),
            suite: SuiteRecord {
                name: suite.name.clone(),
                path: absolute(&suite.path),
                roles_file: suite.roles_file.as_deref().map(absolute),
                digest: suite.digest.clone(),
                trials: rule.trials,
                threshold: rule.threshold.as_f64(),
                own_rules: own_rules(criteria),
                has_fixed_trials: config.has_fixed_trials(),
                has_fixed_threshold: config.has_fixed_threshold(),
                suite_threshold: criteria.suite_threshold.map(Threshold::as_f64),
                is_ci_rule: criteria.is_ci_rule,
                min_score: criteria.min_score,
                has_planned_rates: criteria.has_planned_rates,
                early_stop: criteria.early_stop,
                alpha: criteria.alpha,
                parallel: suite.settings.parallel,
                timeout_seconds: suite.settings.timeout.as_secs_f64(),
                cases: CasesRecord {
                    path: absolute(suite.cases.path()),
                    digest: suite.survey.digest.clone(),
                    total: suite.survey.ids.len(),
                    chosen: Arc::clone(&criteria.cases),
                },
                chosen: ChosenRecord {
                    targets: config.targets.clone(),
                    cases: config.cases.clone(),
                    tags: config.tags.clone(),
                    limit: config.limit,
                    sample: config.sample,
                },
                targets: suite.targets.iter().map(describe_target).collect(),
                checks: suite.checks.iter().map(|check| check.id.clone()).collect(),
                parts: suite.part_digests(),
            },
        }
    }

    /// Reads the `run.json` of a run.
    pub fn read(run: &Path) -> Result<RunFile, Error> {
        let path = run.join(RUN_FILE);
        let bytes =
            std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let version = serde_json::from_slice::<serde_json::Value>(&bytes)
            .ok()
            .and_then(|value| value["schema_version"].as_u64());
        let usage = |message: String, hint: &str| Error::Usage {
            code: None,
            message: format!("{}: {message}", path.display()),
            hint: Some(hint.to_owned()),
        };
        match version {
            Some(version) if version > u64::from(SCHEMA_VERSION) => {
                return Err(usage(
                    format!("written by a newer version of Bakeoff (schema {version})"),
                    "use the version that wrote it, or a newer one",
                ));
            }
            _ => {}
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            usage(
                format!("invalid run file: {error}"),
                "the file is damaged, or an older version of Bakeoff wrote it; restore it from a backup, or start \
                 a new run (`summary.json` next to it has the results)",
            )
        })
    }

    /// Returns the criteria of the run.
    pub fn criteria(&self) -> RunCriteria {
        let suite = &self.suite;
        let target = |target: &serde_json::Value| {
            let name = target["name"].as_str().unwrap_or_default();
            (TargetName::from(name), target["gate"].as_bool().unwrap_or(true))
        };
        RunCriteria {
            targets: suite.targets.iter().map(target).collect(),
            cases: Arc::clone(&suite.cases.chosen),
            plan: self.plan(),
            suite_threshold: self.suite_threshold(),
            is_ci_rule: suite.is_ci_rule,
            min_score: suite.min_score,
            has_planned_rates: suite.has_planned_rates,
            early_stop: suite.early_stop,
            alpha: suite.alpha,
            seed: self.seed,
        }
    }

    fn plan(&self) -> TrialPlan {
        let ids = &self.suite.cases.chosen;
        let default = TrialRule { trials: self.suite.trials, threshold: self.threshold() };
        let own = self.suite.own_rules.iter().filter_map(|(id, own)| {
            let rule = TrialRule { trials: own.trials, threshold: exact(own.threshold) };
            Some((ids.position(id)?, rule))
        });
        TrialPlan::uniform(default, ids.len()).with_own(own)
    }

    /// Returns the exact threshold.
    pub fn threshold(&self) -> Threshold {
        exact(self.suite.threshold)
    }

    /// Returns the exact share of cases that must pass.
    pub fn suite_threshold(&self) -> Option<Threshold> {
        self.suite.suite_threshold.map(exact)
    }
}

fn own_rules(criteria: &RunCriteria) -> BTreeMap<String, OwnRuleRecord> {
    let record = |(case, rule): (usize, TrialRule)| {
        let id = criteria.cases.get(case)?.to_owned();
        Some((id, OwnRuleRecord { trials: rule.trials, threshold: rule.threshold.as_f64() }))
    };
    criteria.plan.own().filter_map(record).collect()
}

/// Converts back to a decimal. The shortest decimal of a number that came from a decimal is that decimal.
fn exact(share: f64) -> Threshold {
    share.to_string().parse().unwrap_or(Threshold::ALL)
}
