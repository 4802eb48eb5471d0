//! Branches of a race: models, or targets of a suite with their prompts, settings and tools.

use super::setup::RaceSetup;
use crate::arguments::RaceArguments;
use crate::error::{CliError, UsageError};
use crate::models::ModelResolver;
use crate::settings;
use bakeoff_agent::{AgentLoopConfig, ContextConfig, PromptTemplate};
use bakeoff_core::{Redactor, Request, Thinking};
use bakeoff_llm::{Client, Model};
use bakeoff_race::EvaluationStrategy;
use bakeoff_suite::{AgentSettings, ModelTarget, Target, TargetKind, render_for_race};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// Names of the branches: the models, and then the targets.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct BranchNames {
    /// Models as given.
    #[serde(default)]
    pub(super) models: Vec<String>,
    /// Targets of the suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) targets: Vec<String>,
}

impl BranchNames {
    pub(super) fn len(&self) -> usize {
        self.models.len() + self.targets.len()
    }

    /// Returns the branches that the arguments name, or else those of the last race or its winner, and the settings of
    /// the last race.
    pub(super) fn choose(
        arguments: &RaceArguments,
        last: Option<(RaceSetup, Option<usize>)>,
    ) -> Result<(BranchNames, Option<RaceSetup>), UsageError> {
        let missing = arguments.session.as_ref().filter(|path| !path.exists());
        let given =
            BranchNames { models: arguments.models.clone(), targets: arguments.targets.clone() };
        if let (0, Some(path)) = (given.len(), missing) {
            return Err(UsageError::new(format!("session {} does not exist", path.display()))
                .hint("set models with `--model` to start it"));
        }
        let samples = arguments.samples;
        match last {
            _ if given.len() > 0 => Ok((given.times(samples), last.map(|(setup, _)| setup))),
            Some((setup, _)) if arguments.again => {
                let branches = match samples {
                    None => setup.branches.clone(),
                    Some(_) => setup.branches.once().times(samples),
                };
                Ok((branches, Some(setup)))
            }
            Some((setup, winner)) => {
                let winner = winner.map(|index| setup.branches.only(index)).unwrap_or_default();
                Ok((winner.times(samples), Some(setup)))
            }
            None if arguments.again => Err(UsageError::new("the session has no race to repeat")
                .hint("set models with `--model`")),
            None => Err(UsageError::new("no models given")
                .hint("set models with `--model`, or targets of a suite with `--target`")),
        }
    }

    /// Repeats each branch.
    fn times(&self, samples: Option<u32>) -> BranchNames {
        let samples = samples.unwrap_or(1) as usize;
        let repeat = |names: &[String]| {
            names.iter().flat_map(|name| std::iter::repeat_n(name.clone(), samples)).collect()
        };
        BranchNames { models: repeat(&self.models), targets: repeat(&self.targets) }
    }

    /// Removes the repetitions.
    fn once(&self) -> BranchNames {
        let mut branches = self.clone();
        branches.models.dedup();
        branches.targets.dedup();
        branches
    }

    /// Returns the branch with this index.
    fn only(&self, index: usize) -> BranchNames {
        let targets = index.checked_sub(self.models.len());
        let target = targets.and_then(|index| self.targets.get(index)).cloned();
        BranchNames {
            models: self.models.get(index).cloned().into_iter().collect(),
            targets: target.into_iter().collect(),
        }
    }

    /// Returns display names; a model or target with several branches gets numbers.
    fn display_names(&self) -> Vec<String> {
        let names: Vec<&String> = self.models.iter().chain(&self.targets).collect();
        let occurrences = |name: &String| names.iter().filter(|other| **other == name).count();
        let number = |index: usize, name: &String| {
            names[..index].iter().filter(|other| **other == name).count() + 1
        };
        let display = |(index, name): (usize, &&String)| match occurrences(name) {
            1 => (*name).clone(),
            _ => format!("{name} #{}", number(index, name)),
        };
        names.iter().enumerate().map(display).collect()
    }
}

/// Resolved models of a race.
pub(super) struct Participants {
    branches: Vec<BranchModel>,
    judges: Vec<Model>,
}

/// The model of a branch, and its target.
enum BranchModel {
    Model(Box<Model>),
    Target(Arc<Target>, Box<ModelTarget>),
}

impl BranchModel {
    fn model(&self) -> &Model {
        match self {
            BranchModel::Model(model) => model,
            BranchModel::Target(_, target) => &target.model,
        }
    }
}

impl Participants {
    pub(super) fn all(&self) -> impl Iterator<Item = &Model> {
        self.branches.iter().map(BranchModel::model).chain(&self.judges)
    }

    /// Returns a redactor for the secrets of the servers of targets.
    pub(super) fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        for branch in &self.branches {
            if let BranchModel::Target(_, target) = branch {
                let servers = target.agent.iter().flat_map(|agent| &agent.mcp);
                servers.for_each(|server| server.add_secrets(&mut redactor));
            }
        }
        redactor
    }
}

/// Parts from which a race is built.
pub(super) struct RaceParts {
    /// Display name of each branch.
    pub(super) names: Vec<String>,
    /// Loop-id segment and name of each judge.
    pub(super) judges: Vec<(String, String)>,
    /// Configs without the tools.
    pub(super) configs: Vec<AgentLoopConfig>,
    /// Tools of each branch, which are started with the race.
    pub(super) tools: Vec<Option<AgentSettings>>,
    pub(super) strategy: Arc<dyn EvaluationStrategy>,
}

impl RaceSetup {
    /// Resolves the models of branches and judges.
    pub(super) fn resolve(&self, resolver: &ModelResolver) -> Result<Participants, CliError> {
        let all = |names: &[String]| -> Result<Vec<Model>, UsageError> {
            names.iter().map(|name| resolver.resolve(name)).collect()
        };
        let mut branches: Vec<BranchModel> =
            all(&self.branches.models)?.into_iter().map(Box::new).map(BranchModel::Model).collect();
        if let (Some(suite), false) = (&self.suite, self.branches.targets.is_empty()) {
            branches.extend(resolve_targets(suite, &self.branches.targets)?);
        }
        Ok(Participants { branches, judges: all(&self.judges)? })
    }

    /// Builds the configs of the branches and the strategy. A system prompt may depend on the prompt. A verifying program
    /// gets the variables of `environment` in addition to those of this process.
    pub(super) fn parts(
        &self,
        client: &Arc<Client>,
        participants: Participants,
        prompt: &str,
        environment: BTreeMap<String, OsString>,
    ) -> Result<RaceParts, UsageError> {
        let Participants { branches, judges } = participants;
        let mut configs = Vec::new();
        let mut tools = Vec::new();
        for branch in branches {
            let (config, settings) = match branch {
                BranchModel::Model(model) => {
                    (AgentLoopConfig::new(client, *model), self.tools.settings()?)
                }
                BranchModel::Target(target, model) => {
                    let config = target_config(client, &target, &model, prompt)?;
                    (config, model.agent.clone())
                }
            };
            configs.push(self.with_options(config, settings.as_ref()));
            tools.push(settings);
        }
        let judges: Vec<AgentLoopConfig> =
            judges.into_iter().map(|model| self.judge(client, model)).collect();
        let segments = judges.iter().map(AgentLoopConfig::segment);
        let judge_names = segments.zip(self.judges.iter().cloned()).collect();
        let names = self.branches.display_names();
        let strategy = self.strategy(judges, environment)?;
        Ok(RaceParts { names, judges: judge_names, configs, tools, strategy })
    }

    /// Applies the options of the command line, which override those of a target.
    fn with_options(
        &self,
        mut config: AgentLoopConfig,
        tools: Option<&AgentSettings>,
    ) -> AgentLoopConfig {
        let request = &mut config.request;
        request.temperature = self.temperature.or(request.temperature);
        request.max_tokens = self.max_tokens.or(request.max_tokens);
        if let Some(effort) = &self.thinking {
            request.thinking = Some(Thinking::Effort(effort.clone()));
        }
        let limits = &mut config.limits;
        limits.max_time = self.timeout().unwrap_or(limits.max_time);
        if let Some(tools) = tools {
            limits.max_turns = tools.max_turns;
            config.tool_timeout = tools.tool_timeout;
            config.context_config = tools.max_context_tokens.map(ContextConfig::new);
        }
        limits.max_turns = self.max_turns.unwrap_or(limits.max_turns);
        config
    }

    fn judge(&self, client: &Arc<Client>, model: Model) -> AgentLoopConfig {
        let mut config = AgentLoopConfig::new(client, model);
        config.context_config = self.judge_context.map(ContextConfig::new);
        config.limits.max_time = self.timeout().unwrap_or(config.limits.max_time);
        config
    }
}

/// Loads the targets, each once, and returns one model for each name.
fn resolve_targets(suite: &Path, names: &[String]) -> Result<Vec<BranchModel>, CliError> {
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if !unique.contains(name) {
            unique.push(name.clone());
        }
    }
    let targets = bakeoff_suite::race_targets(suite, &unique, &settings::variable)?;
    let targets: Vec<Arc<Target>> = targets.into_iter().map(Arc::new).collect();
    let find = |name: &String| targets.iter().find(|target| target.name == name.as_str());
    let branch = |target: &Arc<Target>| match &target.kind {
        TargetKind::Model(model) => Some(BranchModel::Target(Arc::clone(target), model.clone())),
        // The reader has rejected other targets.
        _ => None,
    };
    Ok(names.iter().filter_map(find).filter_map(branch).collect())
}

fn target_config(
    client: &Arc<Client>,
    target: &Arc<Target>,
    model: &ModelTarget,
    prompt: &str,
) -> Result<AgentLoopConfig, UsageError> {
    let mut config = AgentLoopConfig::new(client, model.model.clone());
    config.request = Request { stream: true, ..model.request.clone() };
    if let Some(system) = &model.system {
        let system = render_for_race(system, prompt).map_err(|error| {
            UsageError::new(format!("system prompt of target `{}`: {error}", target.name))
        })?;
        config.system_prompt = Some(system);
    }
    config.limits.max_time = target.timeout.unwrap_or(config.limits.max_time);
    let target = Arc::clone(target);
    let render = move |prompt: &str| {
        render_for_race(&target.prompt, prompt)
            .map_err(|error| format!("target `{}`: {error}", target.name))
    };
    Ok(config.prompt_template(PromptTemplate::from_fn(render)))
}
