//! Settings of a run that do not come from the suite.

use crate::Error;
use crate::case_selection::CaseFilter;
use crate::limit_overrides::{override_judge_limits, override_target_limits};
use crate::search::SearchOverrides;
use crate::traffic_log::HttpCallback;
use bakeoff_core::TargetName;
use bakeoff_llm::Transport;
use bakeoff_pace::{LimitOverrides, Pools};
use bakeoff_stats::Threshold;
use bakeoff_suite::{Budget, MAX_TRIALS, Suite, suggest};
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of a run that do not come from the suite, mostly from the command line.
///
/// ```
/// use bakeoff_eval::RunConfig;
///
/// let mut config = RunConfig::new("runs");
/// config.trials = Some(5);
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RunConfig {
    /// Folder of all runs.
    pub out: PathBuf,
    /// Replaces the parts of the suite's budget that are given here.
    pub budget: Budget,
    /// Replaces the suite's number of trials and those of its cases.
    pub trials: Option<u32>,
    /// Whether cases keep their own numbers of trials in spite of `trials`.
    pub keeps_own_trials: bool,
    /// Replaces the suite's threshold and those of its cases.
    pub threshold: Option<Threshold>,
    /// Whether cases keep their own thresholds in spite of `threshold`.
    pub keeps_own_threshold: bool,
    /// Share of a target's cases that must pass.
    pub suite_threshold: Option<Threshold>,
    /// Applies the threshold to the share of cases that pass.
    pub ci: bool,
    /// Replaces the suite's limit on concurrent trials.
    pub parallel: Option<u32>,
    /// Settings of a search, for the record of the run.
    pub(crate) search: SearchOverrides,
    /// Names of the targets to run; all when empty.
    pub targets: Vec<String>,
    /// Ids of the cases to run; all when empty.
    pub cases: Vec<String>,
    /// Tags of the cases to run; all when empty.
    pub tags: Vec<String>,
    /// Maximum number of cases: the first ones with the ids and tags.
    pub limit: Option<usize>,
    /// Maximum number of cases: random ones with the ids and tags.
    pub sample: Option<usize>,
    /// Seed of the simulated provider and of random orders.
    pub seed: u64,
    /// File of the response cache; responses are not cached when absent.
    pub cache: Option<PathBuf>,
    /// Replaces the limits that the suite sets for models.
    pub limits: LimitOverrides,
    /// Pools shared with other runs of this process; the run has its own when absent.
    pub pools: Option<Arc<Pools>>,
    /// File of limits learned in earlier runs; nothing is learned when absent.
    pub memory: Option<PathBuf>,
    /// Receives every HTTP request of the run.
    pub on_http: Option<HttpCallback>,
    /// Transport of requests; the network when absent.
    pub transport: Option<Arc<dyn Transport>>,
    /// Simulated models in addition to the judge.
    pub simulated_models: Vec<Arc<dyn bakeoff_sim::ModelBehaviour>>,
    /// Keeps the workspaces of trials that did not pass.
    pub keep: bool,
    /// Folder in which programs work, each trial in a folder of its own; `/var/tmp` when absent. It should be
    /// outside of the project, so that programs find no files of the user in the folders above their own.
    pub work_dir: Option<PathBuf>,
    /// Command line, for `run.json`.
    pub arguments: Vec<String>,
}

impl RunConfig {
    /// Creates settings with the folder of all runs; everything else comes from the suite.
    pub fn new(out: impl Into<PathBuf>) -> RunConfig {
        RunConfig { out: out.into(), ..RunConfig::default() }
    }

    /// Whether all cases have the number of trials of these settings.
    pub(crate) fn has_fixed_trials(&self) -> bool {
        self.trials.is_some() && !self.keeps_own_trials
    }

    /// Whether all cases have the threshold of these settings.
    pub(crate) fn has_fixed_threshold(&self) -> bool {
        self.threshold.is_some() && !self.keeps_own_threshold
    }

    /// Applies these settings to a suite.
    ///
    /// # Errors
    ///
    /// When the number of trials or cases is out of range, a target does not exist, or limits are invalid.
    pub(crate) fn apply_to(&self, suite: &mut Suite) -> Result<(), Error> {
        if let Some(trials) = self.trials {
            if !(1..=MAX_TRIALS).contains(&trials) {
                return Err(Error::Usage {
                    code: Some("EVAL_INVALID_TRIALS_CONFIG"),
                    message: format!("--trials must be from 1 to {MAX_TRIALS}, not {trials}"),
                    hint: None,
                });
            }
            suite.settings.trials = trials;
        }
        if self.limit == Some(0) || self.sample == Some(0) {
            return Err(Error::usage("the limit and the sample must be at least one case", None));
        }
        suite.settings.threshold = self.threshold.unwrap_or(suite.settings.threshold);
        suite.settings.parallel = self.parallel.or(suite.settings.parallel);
        self.retain_targets(suite)?;
        suite.settings.timeout = self.limits.timeout.unwrap_or(suite.settings.timeout);
        suite.targets = override_target_limits(std::mem::take(&mut suite.targets), &self.limits)?;
        suite.judges = override_judge_limits(std::mem::take(&mut suite.judges), &self.limits)?;
        suite.settings.budget = Budget {
            cost: self.budget.cost.or(suite.settings.budget.cost),
            tokens: self.budget.tokens.or(suite.settings.budget.tokens),
            time: self.budget.time.or(suite.settings.budget.time),
        };
        Ok(())
    }

    fn retain_targets(&self, suite: &mut Suite) -> Result<(), Error> {
        for name in &self.targets {
            let known = suite.target_names.iter().map(String::as_str);
            if !known.clone().any(|known| known == name) {
                let hint = suggest(name, known);
                return Err(Error::usage(format!("there is no target `{name}`"), hint));
            }
        }
        if !self.targets.is_empty() {
            let is_named = |name: &TargetName| self.targets.iter().any(|one| name == one.as_str());
            suite.targets.retain(|target| is_named(&target.name));
        }
        Ok(())
    }

    /// Returns the filter for cases.
    pub(crate) fn case_filter(&self) -> CaseFilter {
        CaseFilter {
            ids: self.cases.iter().cloned().collect(),
            tags: self.tags.iter().cloned().collect(),
            limit: self.limit,
            sample: self.sample,
            seed: self.seed,
        }
    }
}
