//! From what was typed to what races: models, samples, strategy.

use crate::arguments::{RaceArguments, StrategyName};
use crate::models::{self, Refused};
use bakeoff_agent::{AgentLoopConfig, ContextConfig};
use bakeoff_core::Thinking;
use bakeoff_llm::{Client, Model};
use bakeoff_race::EvaluationStrategy;
use bakeoff_suite::SuiteModels;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a race is about, as it is kept in a session: a later one can go on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setup {
    /// One per branch, as written.
    models: Vec<String>,
    pub(super) strategy: StrategyName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    judges: Vec<String>,
    /// The text, so that it cannot change behind our back.
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

/// Models that can be called.
pub(super) struct Participants {
    models: Vec<Model>,
    judges: Vec<Model>,
}

impl Participants {
    pub(super) fn all(&self) -> impl Iterator<Item = &Model> {
        self.models.iter().chain(&self.judges)
    }
}

/// What a race is made of.
pub(super) struct Ready {
    pub(super) client: Arc<Client>,
    /// One per branch, as written.
    pub(super) names: Vec<String>,
    /// Judges by the names in the ids of their loops.
    pub(super) judges: Vec<(String, String)>,
    pub(super) configs: Vec<AgentLoopConfig>,
    pub(super) strategy: Arc<dyn EvaluationStrategy>,
}

impl Setup {
    /// What was typed; what was not is as in an earlier race of the session, whose winner goes on
    /// alone.
    pub(super) fn new(
        arguments: &RaceArguments,
        earlier: Option<(&Value, Option<usize>)>,
    ) -> Result<Setup, Refused> {
        let last = match earlier {
            Some((settings, winner)) => Some((Setup::read(settings)?, winner)),
            None => None,
        };
        let (models, earlier) = participants(arguments, last)?;
        let same_race = if arguments.again { earlier.as_ref() } else { None };
        let mut judges = arguments.judges.clone();
        if judges.is_empty() {
            judges = same_race.map(|race| race.judges.clone()).unwrap_or_default();
        }
        let strategy = arguments.strategy.or(same_race.map(|race| race.strategy));
        let setup = Setup {
            strategy: chosen(strategy, &judges, models.len())?,
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

    /// What a race of a session was about; its suite may have moved.
    pub(super) fn recorded(settings: &Value, suite: Option<&Path>) -> Result<Setup, Refused> {
        let mut setup = Setup::read(settings)?;
        if let Some(suite) = suite {
            setup.suite = Some(suite.to_owned());
        }
        Ok(setup)
    }

    fn read(settings: &Value) -> Result<Setup, Refused> {
        Setup::deserialize(settings).map_err(|error| {
            let message =
                format!("the session's last race was not made by `bakeoff race`: {error}");
            Refused::new(message, "begin a new session")
        })
    }

    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Finds what does not go together.
    fn check(&self) -> Result<(), Refused> {
        use StrategyName::{Judge, Majority, Pairwise, Panel, Verifier};
        let is = |names: &[StrategyName]| names.contains(&self.strategy);
        if is(&[Judge, Panel, Pairwise]) && self.judges.is_empty() {
            return Err(Refused::new("nobody judges", "name a model with `--judge`"));
        }
        if is(&[Judge, Pairwise]) && self.judges.len() > 1 {
            return Err(Refused::new("there are several judges", "use `--strategy panel`"));
        }
        let judged = is(&[Judge, Panel, Pairwise, Verifier]);
        let table = [
            ("--judge", !self.judges.is_empty() && !judged, "a judge, a panel or a verifier"),
            ("--judge-prompt", self.judge_prompt.is_some() && self.judges.is_empty(), "a judge"),
            ("--judge-context", self.judge_context.is_some() && self.judges.is_empty(), "a judge"),
            ("--extract", self.extract.is_some() && !is(&[Majority]), "`--strategy majority`"),
            ("--expect", self.expect.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
            ("--verify", self.verify.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
        ];
        if let Some((flag, _, whom)) = table.iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(Refused { message: format!("{flag} is for {whom}"), hint: None });
        }
        if is(&[Verifier]) && self.expect.is_none() && self.verify.is_none() {
            let hint = "`--expect REGEX`, or `--verify COMMAND`";
            return Err(Refused::new("nothing says which answers will do", hint));
        }
        Ok(())
    }

    /// Finds the models, with their keys.
    pub(super) fn resolve(&self, known: &SuiteModels) -> Result<Participants, Refused> {
        let all = |names: &[String]| -> Result<Vec<Model>, Refused> {
            names.iter().map(|name| models::resolve(name, known, None)).collect()
        };
        Ok(Participants { models: all(&self.models)?, judges: all(&self.judges)? })
    }

    /// Makes configs and strategy.
    pub(super) fn ready(
        &self,
        client: &Arc<Client>,
        participants: Participants,
    ) -> Result<Ready, Refused> {
        let Participants { models, judges } = participants;
        let configs = models.into_iter().map(|model| self.config(client, model)).collect();
        let judges: Vec<AgentLoopConfig> =
            judges.into_iter().map(|model| self.judge(client, model)).collect();
        let segments = judges.iter().map(AgentLoopConfig::segment);
        let names = segments.zip(self.judges.iter().cloned()).collect();
        let strategy = self.strategy(judges)?;
        let client = Arc::clone(client);
        Ok(Ready { client, names: named(&self.models), judges: names, configs, strategy })
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
        config.context_config = self.judge_context.map(|max_context_tokens| ContextConfig {
            max_context_tokens,
            ..ContextConfig::default()
        });
        config.limits.max_time = self.timeout().unwrap_or(config.limits.max_time);
        config
    }

    fn timeout(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.timeout_seconds?).ok()
    }
}

/// A race that goes on is the one that was interrupted, whatever is typed now.
pub(super) fn refuse_changes(arguments: &RaceArguments) -> Result<(), Refused> {
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
        Some((flag, _)) => Err(Refused::new(
            format!("{flag} does not go with a race that was interrupted, which has its own"),
            "leave it out to go on, or give the race up with `--abandon`",
        )),
    }
}

/// One model per branch, and the settings of the last race.
fn participants(
    arguments: &RaceArguments,
    last: Option<(Setup, Option<usize>)>,
) -> Result<(Vec<String>, Option<Setup>), Refused> {
    let samples = arguments.samples.unwrap_or(1) as usize;
    let each = |models: &[String]| -> Vec<String> {
        models.iter().flat_map(|model| std::iter::repeat_n(model.clone(), samples)).collect()
    };
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
            Err(Refused::new("the session has no race to repeat", "name models with `--model`"))
        }
        None => Err(Refused::new("no model takes part", "name some with `--model`")),
    }
}

/// The strategy that was named, or the one that goes without saying.
fn chosen(
    strategy: Option<StrategyName>,
    judges: &[String],
    branches: usize,
) -> Result<StrategyName, Refused> {
    match (strategy, judges, branches) {
        (Some(strategy), _, _) => Ok(strategy),
        (None, [_], _) => Ok(StrategyName::Judge),
        (None, [_, ..], _) => Ok(StrategyName::Panel),
        (None, [], 1) => Ok(StrategyName::Transparent),
        (None, [], _) => Err(Refused::new(
            "nothing says who wins",
            "`--judge MODEL` has a model choose; `--strategy fastest`, `majority`, `verifier` and others do without",
        )),
    }
}

fn text(typed: &Option<String>, earlier: Option<&Option<String>>) -> Option<String> {
    typed.clone().or_else(|| earlier.cloned().flatten())
}

fn read_text(path: &Path) -> Result<String, Refused> {
    let refused = |reason: String| {
        Refused::new(format!("cannot read {}: {reason}", path.display()), "it must be a text file")
    };
    let is_file = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?.is_file();
    if !is_file {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    match text.trim().is_empty() {
        true => Err(refused("it is empty".to_owned())),
        false => Ok(text),
    }
}

/// Names for people: a model that takes part several times gets numbers.
fn named(models: &[String]) -> Vec<String> {
    let times = |model: &String| models.iter().filter(|other| *other == model).count();
    models
        .iter()
        .enumerate()
        .map(|(place, model)| match times(model) {
            1 => model.clone(),
            _ => {
                let earlier = models[..place].iter().filter(|other| *other == model).count();
                format!("{model} #{}", earlier + 1)
            }
        })
        .collect()
}
