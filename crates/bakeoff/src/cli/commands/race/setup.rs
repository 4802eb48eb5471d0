//! Settings of a race: models, samples, judges and strategy, from the arguments and the session.

use crate::arguments::{RaceArguments, StrategyName};
use crate::error::UsageError;
use crate::models::ModelResolver;
use bakeoff_agent::{AgentLoopConfig, ContextConfig};
use bakeoff_core::Thinking;
use bakeoff_llm::{Client, Model};
use bakeoff_race::EvaluationStrategy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a race, as stored in the session so that a later command can resume it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RaceSetup {
    /// Model of each branch, as given.
    models: Vec<String>,
    pub(super) strategy: StrategyName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    judges: Vec<String>,
    /// The text rather than the path, because the file may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge_context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extract: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verify: Option<String>,
    /// Folder in which the commands of the flags run: that of the command that first gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) suite: Option<PathBuf>,
    #[serde(default)]
    pub(super) seed: u64,
}

/// Resolved models of a race.
pub(super) struct Participants {
    models: Vec<Model>,
    judges: Vec<Model>,
}

impl Participants {
    pub(super) fn all(&self) -> impl Iterator<Item = &Model> {
        self.models.iter().chain(&self.judges)
    }
}

/// Parts from which a race is built.
pub(super) struct RaceParts {
    /// Display name of each branch.
    pub(super) names: Vec<String>,
    /// Loop-id segment and name of each judge.
    pub(super) judges: Vec<(String, String)>,
    pub(super) configs: Vec<AgentLoopConfig>,
    pub(super) strategy: Arc<dyn EvaluationStrategy>,
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
        let (models, earlier) = participants(arguments, last)?;
        let same_race = if arguments.again { earlier.as_ref() } else { None };
        let mut judges = arguments.judges.clone();
        if judges.is_empty() {
            judges = same_race.map(|race| race.judges.clone()).unwrap_or_default();
        }
        let strategy = arguments.strategy.or(same_race.map(|race| race.strategy));
        let setup = RaceSetup {
            strategy: default_strategy(strategy, &judges, models.len())?,
            models,
            judges,
            judge_prompt: match &arguments.judge_prompt {
                Some(path) => Some(read_text(path)?),
                None => same_race.and_then(|race| race.judge_prompt.clone()),
            },
            judge_context: arguments
                .judge_context
                .or(same_race.and_then(|race| race.judge_context)),
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

    /// Rejects contradicting settings.
    fn check(&self) -> Result<(), UsageError> {
        use StrategyName::{Judge, Majority, Pairwise, Panel, Verifier};
        let is = |names: &[StrategyName]| names.contains(&self.strategy);
        if is(&[Judge, Panel, Pairwise]) && self.judges.is_empty() {
            return Err(no_judge());
        }
        if is(&[Judge, Pairwise]) && self.judges.len() > 1 {
            return Err(
                UsageError::new("this strategy takes one judge").hint("use `--strategy panel`")
            );
        }
        let judged = is(&[Judge, Panel, Pairwise, Verifier]);
        let table = [
            (
                "--judge",
                !self.judges.is_empty() && !judged,
                "the strategies judge, panel, pairwise and verifier",
            ),
            (
                "--judge-prompt",
                self.judge_prompt.is_some() && self.judges.is_empty(),
                "races with `--judge`",
            ),
            (
                "--judge-context",
                self.judge_context.is_some() && self.judges.is_empty(),
                "races with `--judge`",
            ),
            ("--extract", self.extract.is_some() && !is(&[Majority]), "`--strategy majority`"),
            ("--expect", self.expect.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
            ("--verify", self.verify.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
        ];
        if let Some((flag, _, scope)) = table.iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(UsageError::new(format!("{flag} is for {scope}")));
        }
        if is(&[Verifier]) && self.expect.is_none() && self.verify.is_none() {
            return Err(UsageError::new("the verifier needs --expect or --verify")
                .hint("`--expect REGEX`, or `--verify COMMAND`"));
        }
        Ok(())
    }

    /// Resolves the models of branches and judges.
    pub(super) fn resolve(&self, resolver: &ModelResolver) -> Result<Participants, UsageError> {
        let all = |names: &[String]| -> Result<Vec<Model>, UsageError> {
            names.iter().map(|name| resolver.resolve(name)).collect()
        };
        Ok(Participants { models: all(&self.models)?, judges: all(&self.judges)? })
    }

    /// Builds the configs of the branches and the strategy. A verifying program gets the variables of `environment` in
    /// addition to those of this process.
    pub(super) fn parts(
        &self,
        client: &Arc<Client>,
        participants: Participants,
        environment: BTreeMap<String, OsString>,
    ) -> Result<RaceParts, UsageError> {
        let Participants { models, judges } = participants;
        let configs = models.into_iter().map(|model| self.config(client, model)).collect();
        let judges: Vec<AgentLoopConfig> =
            judges.into_iter().map(|model| self.judge(client, model)).collect();
        let segments = judges.iter().map(AgentLoopConfig::segment);
        let names = segments.zip(self.judges.iter().cloned()).collect();
        let strategy = self.strategy(judges, environment)?;
        Ok(RaceParts { names: branch_names(&self.models), judges: names, configs, strategy })
    }

    fn config(&self, client: &Arc<Client>, model: Model) -> AgentLoopConfig {
        let mut config = AgentLoopConfig::new(client, model);
        config.request.temperature = self.temperature;
        config.request.max_tokens = self.max_tokens;
        config.request.thinking = self.thinking.clone().map(Thinking::Effort);
        config.limits.max_time = self.timeout().unwrap_or(config.limits.max_time);
        config
    }

    fn judge(&self, client: &Arc<Client>, model: Model) -> AgentLoopConfig {
        let mut config = AgentLoopConfig::new(client, model);
        config.context_config = self.judge_context.map(ContextConfig::new);
        config.limits.max_time = self.timeout().unwrap_or(config.limits.max_time);
        config
    }

    fn timeout(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.timeout_seconds?).ok()
    }
}

/// Returns the error of a strategy without its judge.
pub(super) fn no_judge() -> UsageError {
    UsageError::new("this strategy needs --judge").hint("`--judge MODEL` sets the judge model")
}

/// Rejects arguments that would change a race that is resumed.
pub(super) fn check_unchanged(arguments: &RaceArguments) -> Result<(), UsageError> {
    let flags = [
        ("--model", !arguments.models.is_empty()),
        ("--samples", arguments.samples.is_some()),
        ("--again", arguments.again),
        ("--judge", !arguments.judges.is_empty()),
        ("--strategy", arguments.strategy.is_some()),
        ("--judge-prompt", arguments.judge_prompt.is_some()),
        ("--judge-context", arguments.judge_context.is_some()),
        ("--extract", arguments.extract.is_some()),
        ("--expect", arguments.expect.is_some()),
        ("--verify", arguments.verify.is_some()),
        ("--temperature", arguments.temperature.is_some()),
        ("--max-tokens", arguments.max_tokens.is_some()),
        ("--thinking", arguments.thinking.is_some()),
        ("--timeout", arguments.timeout.is_some()),
        ("--seed", arguments.seed.is_some()),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(UsageError::new(format!("{flag} cannot change an interrupted race"))
                .hint("omit it to resume the race, or discard the race with `--abandon`"))
        }
    }
}

/// Returns the model of each branch and the settings of the last race.
fn participants(
    arguments: &RaceArguments,
    last: Option<(RaceSetup, Option<usize>)>,
) -> Result<(Vec<String>, Option<RaceSetup>), UsageError> {
    let samples = arguments.samples.unwrap_or(1) as usize;
    let each = |models: &[String]| -> Vec<String> {
        models.iter().flat_map(|model| std::iter::repeat_n(model.clone(), samples)).collect()
    };
    let missing = arguments.session.as_ref().filter(|path| !path.exists());
    if let (true, Some(path)) = (arguments.models.is_empty(), missing) {
        return Err(UsageError::new(format!("session {} does not exist", path.display()))
            .hint("set models with `--model` to start it"));
    }
    match last {
        _ if !arguments.models.is_empty() => {
            Ok((each(&arguments.models), last.map(|(setup, _)| setup)))
        }
        Some((setup, _)) if arguments.again => {
            let models = match arguments.samples {
                None => setup.models.clone(),
                Some(_) => {
                    let mut once = setup.models.clone();
                    once.dedup();
                    each(&once)
                }
            };
            Ok((models, Some(setup)))
        }
        Some((setup, winner)) => {
            let winner = winner.and_then(|winner| setup.models.get(winner..=winner));
            Ok((each(winner.unwrap_or_default()), Some(setup)))
        }
        None if arguments.again => {
            Err(UsageError::new("the session has no race to repeat")
                .hint("set models with `--model`"))
        }
        None => Err(UsageError::new("no models given").hint("set models with `--model`")),
    }
}

/// Returns the given strategy, or the default for these judges and branches.
fn default_strategy(
    strategy: Option<StrategyName>,
    judges: &[String],
    branches: usize,
) -> Result<StrategyName, UsageError> {
    match (strategy, judges, branches) {
        (Some(strategy), _, _) => Ok(strategy),
        (None, [_], _) => Ok(StrategyName::Judge),
        (None, [_, ..], _) => Ok(StrategyName::Panel),
        (None, [], 1) => Ok(StrategyName::Transparent),
        (None, [], _) => Err(UsageError::new("no strategy or judge given").hint(
            "`--judge MODEL` lets a model choose; `--strategy fastest`, `majority`, `verifier` and others need none",
        )),
    }
}

fn text(given: &Option<String>, earlier: Option<&Option<String>>) -> Option<String> {
    given.clone().or_else(|| earlier.cloned().flatten())
}

fn current_folder() -> Result<PathBuf, UsageError> {
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

/// Returns display names; a model with several branches gets numbers.
fn branch_names(models: &[String]) -> Vec<String> {
    let occurrences = |model: &String| models.iter().filter(|other| *other == model).count();
    models
        .iter()
        .enumerate()
        .map(|(index, model)| match occurrences(model) {
            1 => model.clone(),
            _ => {
                let earlier = models[..index].iter().filter(|other| *other == model).count();
                format!("{model} #{}", earlier + 1)
            }
        })
        .collect()
}
