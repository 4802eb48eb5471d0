//! Settings of a race, from the arguments and the session.

use super::branches::BranchNames;
use super::rules::default_strategy;
use super::tools::ToolSetup;
use crate::arguments::{RaceArguments, StrategyName};
use crate::error::UsageError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of a race, as stored in the session so that a later command can resume it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RaceSetup {
    #[serde(flatten)]
    pub(super) branches: BranchNames,
    pub(super) strategy: StrategyName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) judges: Vec<String>,
    /// The text rather than the path, because the file may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_rounds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_orders: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quorum: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extract: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verify: Option<String>,
    /// Folder in which the command of `verify` runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<String>,
    #[serde(default, skip_serializing_if = "ToolSetup::is_empty")]
    pub(super) tools: ToolSetup,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_turns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) suite: Option<PathBuf>,
    #[serde(default)]
    pub(super) seed: u64,
}

impl RaceSetup {
    /// Combines the arguments with an earlier race of the session and the index of its winner. Without
    /// models in the arguments, the winner continues alone.
    pub(super) fn new(
        arguments: &RaceArguments,
        earlier: Option<(&Value, Option<usize>)>,
    ) -> Result<RaceSetup, UsageError> {
        let last = match earlier {
            Some((settings, winner)) => Some((RaceSetup::read(settings)?, winner)),
            None => None,
        };
        let (branches, earlier) = BranchNames::choose(arguments, last)?;
        let same_race = if arguments.again { earlier.as_ref() } else { None };
        let mut judges = arguments.judges.clone();
        if judges.is_empty() {
            judges = same_race.map(|race| race.judges.clone()).unwrap_or_default();
        }
        let strategy = arguments.strategy.or(same_race.map(|race| race.strategy));
        let setup = RaceSetup {
            strategy: default_strategy(strategy, &judges, branches.len())?,
            branches,
            judges,
            judge_prompt: match &arguments.judge_prompt {
                Some(path) => Some(read_text(path)?),
                None => same_race.and_then(|race| race.judge_prompt.clone()),
            },
            judge_context: arguments
                .judge_context
                .or(same_race.and_then(|race| race.judge_context)),
            judge_rounds: arguments.judge_rounds.or(same_race.and_then(|race| race.judge_rounds)),
            judge_orders: arguments.judge_orders.or(same_race.and_then(|race| race.judge_orders)),
            quorum: arguments.quorum.or(same_race.and_then(|race| race.quorum)),
            extract: text(&arguments.extract, same_race.map(|race| &race.extract)),
            expect: text(&arguments.expect, same_race.map(|race| &race.expect)),
            verify: text(&arguments.verify, same_race.map(|race| &race.verify)),
            folder: match (&arguments.verify, same_race) {
                (Some(_), _) => Some(current_folder()?),
                (None, race) => race.and_then(|race| race.folder.clone()),
            },
            temperature: arguments
                .temperature
                .or(earlier.as_ref().and_then(|race| race.temperature)),
            max_tokens: arguments.max_tokens.or(earlier.as_ref().and_then(|race| race.max_tokens)),
            thinking: text(&arguments.thinking, earlier.as_ref().map(|race| &race.thinking)),
            tools: ToolSetup::choose(arguments, earlier.as_ref().map(|race| &race.tools))?,
            max_turns: arguments.max_turns.or(earlier.as_ref().and_then(|race| race.max_turns)),
            timeout_seconds: arguments
                .timeout
                .map(|timeout| timeout.as_secs_f64())
                .or(earlier.as_ref().and_then(|race| race.timeout_seconds)),
            suite: arguments.suite.clone().or(earlier.as_ref().and_then(|race| race.suite.clone())),
            seed: arguments.seed.or(earlier.map(|race| race.seed)).unwrap_or_default(),
        };
        setup.check()?;
        Ok(setup)
    }

    /// Reads the settings of a recorded race; its suite may have moved.
    pub(super) fn recorded(
        settings: &Value,
        suite: Option<&Path>,
    ) -> Result<RaceSetup, UsageError> {
        let mut setup = RaceSetup::read(settings)?;
        if let Some(suite) = suite {
            setup.suite = Some(suite.to_owned());
        }
        Ok(setup)
    }

    fn read(settings: &Value) -> Result<RaceSetup, UsageError> {
        RaceSetup::deserialize(settings).map_err(|error| {
            let message =
                format!("the last race of the session was not created by `bakeoff race`: {error}");
            UsageError::new(message).hint("start a new session")
        })
    }

    /// Returns the settings for the session. Paths are absolute, because a later command may run in another
    /// folder.
    pub(super) fn to_json(&self) -> Value {
        let suite = self.suite.as_ref();
        let suite = suite.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        serde_json::to_value(RaceSetup { suite, ..self.clone() }).unwrap_or_default()
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.timeout_seconds?).ok()
    }
}

fn text(given: &Option<String>, earlier: Option<&Option<String>>) -> Option<String> {
    given.clone().or_else(|| earlier.cloned().flatten())
}

pub(super) fn current_folder() -> Result<PathBuf, UsageError> {
    std::env::current_dir()
        .map_err(|error| UsageError::new(format!("cannot determine the current folder: {error}")))
}

fn read_text(path: &Path) -> Result<String, UsageError> {
    let error = |reason: String| {
        UsageError::new(format!("cannot read {}: {reason}", path.display()))
            .hint("the prompt must be a text file")
    };
    let is_file = std::fs::metadata(path).map_err(|source| error(source.to_string()))?.is_file();
    if !is_file {
        return Err(error("not a regular file".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|source| error(source.to_string()))?;
    match text.trim().is_empty() {
        true => Err(error("empty file".to_owned())),
        false => Ok(text),
    }
}
